#!/usr/bin/env python3
"""Opens a page in headless Chromium and does what its input says, a line each, with a line as answer:

  await EXPRESSION   until the JavaScript expression is true in the page: "ok", or what the page shows instead
  run EXPRESSION     its value as JSON
  picture FILE       writes the page as PNG, as wide as it was opened: "ok"
  dark, light        the page's colours: "ok"
  traffic            {"bytes": that came, "elsewhere": [URLs that are not the page's], "errors": [of the console]}

  browser.py CHROMIUM URL DIRECTORY [WIDTHxHEIGHT]
"""
import base64
import collections
import fcntl
import json
import os
import signal
import struct
import subprocess
import sys
import zlib
from urllib.parse import urlsplit

SECONDS = 60


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def rows(data, size, step):
    """The lines of a PNG without their filters. Source: PNG Specification, 9.2."""
    before = bytearray(size)
    for at in range(0, len(data), size + 1):
        kind, row = data[at], bytearray(data[at + 1:at + 1 + size])
        for i in range(size if kind else 0):
            left, up, corner = (row[i - step], before[i], before[i - step]) if i >= step else (0, before[i], 0)
            if kind == 4:
                guess = left + up - corner
                near = min((abs(guess - left), 0, left), (abs(guess - up), 1, up), (abs(guess - corner), 2, corner))[2]
            else:
                near = (left, up, (left + up) // 2)[kind - 1]
            row[i] = (row[i] + near) & 255
        yield row
        before = row


def smaller(png):
    """The PNG with a palette of its 256 commonest colours: a page has few others, and a third of the bytes."""
    at, parts = 8, {b"IDAT": b""}
    while at < len(png):
        length, kind = struct.unpack(">I4s", png[at:at + 8])
        parts[kind] = parts.get(kind, b"") + png[at + 8:at + 8 + length] if kind == b"IDAT" else png[at + 8:at + 8 + length]
        at += length + 12
    width, height, depth, colours = struct.unpack(">IIBB", parts[b"IHDR"][:10])
    step = {2: 3, 6: 4}[colours]
    lines = [[tuple(row[i:i + 3]) for i in range(0, width * step, step)]
             for row in rows(zlib.decompress(parts[b"IDAT"]), width * step, step)]
    palette = [colour for colour, _ in collections.Counter(colour for line in lines for colour in line).most_common(256)]
    nearest = {colour: i for i, colour in enumerate(palette)}
    for colour in {colour for line in lines for colour in line} - set(palette):
        nearest[colour] = min(range(len(palette)), key=lambda i: sum((a - b) ** 2 for a, b in zip(colour, palette[i])))
    data = b"".join(b"\0" + bytes(nearest[colour] for colour in line) for line in lines)
    return (png[:8] + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, 3, 0, 0, 0)) +
            chunk(b"PLTE", bytes(value for colour in palette for value in colour)) +
            chunk(b"IDAT", zlib.compress(data, 9)) + chunk(b"IEND", b""))


class Browser:
    """Speaks the DevTools protocol over Chromium's descriptors 3 and 4: JSON texts that end with a zero."""

    def __init__(self, chromium, url, directory, size):
        # Chromium's ends are moved beyond the numbers that they get.
        commands, self.write_to = os.pipe()
        self.read_from, answers = os.pipe()
        commands, answers = (fcntl.fcntl(fd, fcntl.F_DUPFD, 20) for fd in (commands, answers))

        def place():
            os.dup2(commands, 3)
            os.dup2(answers, 4)

        arguments = [chromium, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
                     "--disable-background-networking", "--disable-component-update", "--disable-default-apps", "--disable-sync",
                     "--disable-extensions", "--hide-scrollbars", "--force-color-profile=srgb", "--lang=en-GB",
                     "--remote-debugging-pipe", "--user-data-dir=" + os.path.join(directory, "profile"), "about:blank"]
        with open(os.path.join(directory, "chromium.log"), "wb") as log:
            self.process = subprocess.Popen(arguments, preexec_fn=place, pass_fds=(3, 4), start_new_session=True,
                                            stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        os.close(commands)
        os.close(answers)
        self.buffer = b""
        self.asked = 0
        self.session = None
        self.traffic = {"bytes": 0, "elsewhere": [], "errors": []}
        self.page = urlsplit(url).netloc
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Network", "Log", "Runtime"):
            self.call(domain + ".enable")
        width, height = (int(number) for number in size.split("x"))
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.call("Page.navigate", url=url)

    def call(self, method, **parameters):
        self.asked += 1
        message = {"id": self.asked, "method": method, "params": parameters}
        if self.session is not None:
            message["sessionId"] = self.session
        os.write(self.write_to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.read()
            if answer.get("id") == self.asked:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            self.note(answer.get("method"), answer.get("params", {}))

    def read(self):
        while b"\0" not in self.buffer:
            part = os.read(self.read_from, 1 << 16)
            if not part:
                raise RuntimeError("Chromium ended")
            self.buffer += part
        text, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(text)

    def note(self, event, parameters):
        if event == "Network.requestWillBeSent":
            url = urlsplit(parameters["request"]["url"])
            if url.scheme not in ("about", "data") and url.netloc != self.page:
                self.traffic["elsewhere"].append(url.geturl())
        elif event == "Network.loadingFinished":
            self.traffic["bytes"] += int(parameters["encodedDataLength"])
        elif event == "Log.entryAdded" and parameters["entry"]["level"] == "error":
            self.traffic["errors"].append(parameters["entry"]["text"])
        elif event == "Runtime.exceptionThrown":
            self.traffic["errors"].append(json.dumps(parameters["exceptionDetails"]))
        elif event == "Runtime.consoleAPICalled" and parameters["type"] in ("error", "assert"):
            self.traffic["errors"].append(json.dumps(parameters["args"]))

    def evaluate(self, expression):
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise RuntimeError(f"{expression}: {result['exceptionDetails']}")
        return result["result"].get("value")

    def wait(self, expression):
        came = self.evaluate(
            "new Promise(done => {"
            "  const holds = () => { try { return Boolean(%s); } catch { return false; } };"
            "  const look = setInterval(() => { if (holds()) { clearInterval(look); done(true); } }, 50);"
            "  setTimeout(() => { clearInterval(look); done(false); }, %d);"
            "})" % (expression, SECONDS * 1000))
        return "ok" if came else json.dumps(self.evaluate("document.body.innerText"))

    def picture(self, path):
        height = self.evaluate("document.documentElement.scrollHeight")
        width = self.evaluate("document.documentElement.clientWidth")
        shot = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True,
                         clip={"x": 0, "y": 0, "width": width, "height": height, "scale": 1})
        with open(path, "wb") as file:
            file.write(smaller(base64.b64decode(shot["data"])))
        return "ok"

    def colours(self, scheme):
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        return "ok"

    def close(self):
        """Ends all of its processes, which write to the directory to the last."""
        try:
            self.session = None
            self.call("Browser.close")
            self.process.wait(SECONDS)
        except (RuntimeError, OSError, subprocess.TimeoutExpired):
            self.process.kill()
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()

    def do(self, line):
        verb, _, rest = line.partition(" ")
        if verb == "await":
            return self.wait(rest)
        if verb == "run":
            return json.dumps(self.evaluate(rest))
        if verb == "picture":
            return self.picture(rest)
        if verb in ("dark", "light"):
            return self.colours(verb)
        if verb == "traffic":
            self.evaluate("0")  # reads what came before
            return json.dumps(self.traffic)
        return f"there is no {verb}"


def main():
    chromium, url, directory = sys.argv[1:4]
    browser = Browser(chromium, url, directory, sys.argv[4] if len(sys.argv) > 4 else "1100x800")
    try:
        for line in sys.stdin:
            try:
                answer = browser.do(line.rstrip("\n"))
            except RuntimeError as error:
                answer = str(error)
            print(answer.replace("\n", " "), flush=True)
    finally:
        browser.close()


main()
