"""Plays one service and batch work beside it, on real containers, in several ways, and reports what each way is worth.

scripts/worth.sh starts it inside scripts/containerd.sh; docs/worth.md has the method.
"""
import argparse
import contextlib
import dataclasses
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import tarfile
import time
import uuid

sys.dont_write_bytecode = True
import report  # noqa: E402  beside this file

PORT = 47811
SERVICE_IMAGE, BATCH_IMAGE = "localhost/worth-service:1", "localhost/worth-batch:1"
CPUS = len(os.sched_getaffinity(0))


@dataclasses.dataclass
class Service:
    """A program, and a load of about a third of one CPU of 2 to 3 GHz."""
    program: str  # in the image
    command: list
    request: str
    prepare: str = ""
    rate: int = 3000


SERVICES = {
    "redis": Service("redis-server", ["/bin/redis-server", "--port", str(PORT), "--bind", "127.0.0.1", "--save", ""],
                     "SORT list LIMIT 0 10\\r\\n", "RPUSH list " + " ".join(str(i * 577 % 1300) for i in range(1300)) + "\\r\\n"),
    "nginx": Service("nginx", ["/bin/nginx", "-c", "/data/nginx.conf"],
                     "GET /page HTTP/1.1\\r\\nHost: service\\r\\nAccept-Encoding: gzip\\r\\n\\r\\n"),
    "memcached": Service("memcached", ["/bin/memcached", "-u", "root", "-l", "127.0.0.1", "-p", str(PORT)],
                         "get" + " key" * 400 + "\\r\\n", "set key 0 0 100\\r\\n" + "x" * 100 + "\\r\\n"),
}
BATCHES = {
    "compiler": "/bin/cc1 -quiet -O2 /data/job.c -o /dev/null",
    "zstd": "/bin/zstd -q -c -6 /data/job.bin >/dev/null",
    "memory": "/bin/dd if=/dev/zero of=/dev/null bs=64M count=8 2>/dev/null",
}


@dataclasses.dataclass
class Way:
    title: str
    batch: str = "burstable"  # its QoS class; empty: there is no batch work
    cpu: dict = dataclasses.field(default_factory=dict)  # the cpu plugin's keys; without any, all share all CPUs
    service: str = "burstable"  # its QoS class
    keys: dict = dataclasses.field(default_factory=dict)  # other keys of qrmd


BATCH = {"select": {"label": {"work": "batch"}}}
ELSE = {"select": {"namespace": "*"}}
POOLS = {"rules": [BATCH | {"pool": "batch"}, ELSE | {"pool": "service"}]}


def pools(service, batch):
    return POOLS | {"pools": {"service": {"size": {"min": 1}} | service, "batch": {"size": {"min": 1}} | batch,
                              "default": {"size": {"min": 0}}}}


WAYS = {
    "a": Way("service alone", batch=""),
    "a2": Way("service alone, again", batch=""),
    "b": Way("Kubernetes' defaults, batch Burstable"),
    "be": Way("Kubernetes' defaults, batch BestEffort", batch="besteffort"),
    "c": Way("kubelet's static policy", cpu={"static": {"reserved-cpu-count": 1}}, service="guaranteed"),
    "d": Way("own CPUs", cpu={"rules": [BATCH | {"pool": "batch"}, ELSE | {"grant": "own"}], "grants": {"own": {}},
                              "pools": {"batch": {"size": {"min": 1}}, "default": {"size": {"min": 0}}}}),
    "e": Way("pool beside pool", cpu=pools({}, {})),
    "f": Way("lend", cpu=pools({"lend": {"to": ["batch"]}}, {"borrow": {"idle": "all"}})),
    "g": Way("idle weight", keys={"qos-classes": True, "class-types": {"cpu-scheduling": {"namespace-defaults": {"batch": "idle"}}}}),
    "h": Way("lend to idle weight", cpu=pools({"lend": {"to": ["batch"]}}, {"borrow": {"idle": "all"}, "idle-weight": True})),
}


def read_arguments(words):
    parser = argparse.ArgumentParser(prog="scripts/worth.sh", description=__doc__.partition("\n")[0], epilog=f"""
        Ways: {'; '.join(f'{way} {of.title}' for way, of in WAYS.items())}. The report is printed, and is in --out with the picture
        (worth.svg) and all numbers (worth.json).""")
    add = parser.add_argument
    add("--service", choices=SERVICES, default="redis", help="of Debian's packages (default: redis)")
    add("--batch", choices=BATCHES, default="compiler", help="what runs beside it (default: compiler)")
    add("--ways", default=",".join(WAYS), help="list of the ways to play (default: all)")
    add("--rounds", type=int, default=7, help="how often each way is played (default: 7)")
    add("--seconds", type=int, default=8, help="of each play, after one second that does not count (default: 8)")
    add("--seed", type=int, default=random.SystemRandom().randrange(10**6), help="of the order of ways; printed")
    add("--load", type=int, metavar="RATE", help="requests a second (default: 3000, about a third of one CPU)")
    add("--image", metavar="ARCHIVE", help="your service instead: an image as `docker save` writes it; with --port and --request")
    add("--pod", metavar="FILE", help="your service's pod, with one CPU requested; with --image, --port and --request. Way (c) gives "
        "it an own CPU only if it is Guaranteed")
    add("--port", type=int, default=PORT, help="where your service listens, on 127.0.0.1")
    add("--request", help="what is sent to it, with \\r and \\n; its answers must all have the same length")
    add("--prepare", help="what is sent once before")
    add("--out", default="build/worth", help="directory of the report (default: build/worth)")
    add("--build", default="build/release", help="use the programs built there, and build none")
    add("--needs", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(words)
    options.ways = options.ways.split(",")
    unknown = [way for way in options.ways if way not in WAYS]
    if unknown:
        parser.error(f"there is no way {unknown[0]}; choose from {', '.join(WAYS)}")
    if min(options.rounds, options.seconds, options.load or 1) < 1:
        parser.error("--rounds, --seconds and --load must be at least 1")
    if (options.image or options.pod) and not options.request:
        parser.error("--image and --pod need --request, and --port if it is not " + str(PORT))
    return options


# --- cgroups as kubelet makes them ---------------------------------------------------------------------------------------

V1 = os.path.exists("/sys/fs/cgroup/cpu/cpu.shares") or os.path.isdir("/sys/fs/cgroup/cpuacct")


def controller(name):
    return pathlib.Path("/sys/fs/cgroup") / (name if V1 else "")


def make_cgroup(path, shares, quota=0):
    """`path` below the hierarchy of the cpu controller; with v2, its parents pass the controllers on."""
    directory = controller("cpu") / path.lstrip("/")
    directory.mkdir(parents=True, exist_ok=True)
    if V1:
        (directory / "cpu.shares").write_text(str(shares))
        (directory / "cpu.cfs_quota_us").write_text(str(quota or -1))
        return
    for parent in reversed(directory.parents):
        if (parent / "cgroup.subtree_control").exists():
            (parent / "cgroup.subtree_control").write_text("+cpu +cpuset +memory +pids")
    (directory / "cgroup.subtree_control").write_text("+cpu +cpuset +memory +pids")
    (directory / "cpu.weight").write_text(str(1 + (shares - 2) * 9999 // 262142))
    (directory / "cpu.max").write_text(f"{quota or 'max'} 100000")


def processes(path):
    groups = (controller("cpu") / path.lstrip("/")).rglob("cgroup.procs")
    return sorted(int(pid) for file in groups for pid in file.read_text().split())


def cpus_of(path):
    """The CPUs on which the processes of a pod's container may run; the sandbox has all."""
    cpus = set()
    for pid in processes(path):
        with contextlib.suppress(OSError):  # it has ended
            cpus |= os.sched_getaffinity(pid) if pathlib.Path(f"/proc/{pid}/comm").read_text() != "probe\n" else set()
    return sorted(cpus)


def usage(path):
    """Seconds of CPU that a cgroup has had, and milliseconds for which its groups were throttled."""
    directory = path.lstrip("/")
    stats = [dict(line.split() for line in file.read_text().splitlines())
             for file in (controller("cpu") / directory).rglob("cpu.stat")]
    if V1:
        spent = int((controller("cpuacct") / directory / "cpuacct.usage").read_text()) / 1e9
        return spent, sum(int(stat.get("throttled_time", 0)) for stat in stats) / 1e6
    own = dict(line.split() for line in (controller("cpu") / directory / "cpu.stat").read_text().splitlines())
    return int(own["usage_usec"]) / 1e6, sum(int(stat.get("throttled_usec", 0)) for stat in stats) / 1e3


def machine_times():
    """Seconds of all CPUs so far: idle, steal, all."""
    words = [int(word) for word in pathlib.Path("/proc/stat").read_text().split("\n")[0].split()[1:9]]
    return [ticks / os.sysconf("SC_CLK_TCK") for ticks in (words[3] + words[4], words[7], sum(words))]


# --- one play ------------------------------------------------------------------------------------------------------------

class Node:
    """The private containerd's node, with what is started on it."""

    def __init__(self, options):
        self.options = options
        self.work = pathlib.Path(os.environ["QRM_WORK_DIR"]) / "worth"
        self.work.mkdir(exist_ok=True)
        self.kubepods = os.environ["QRM_CGROUP_PARENT"] + "/kubepods"
        self.bin = pathlib.Path(options.build).resolve()
        self.started = []
        self.answer = 0
        self.service = dataclasses.replace(SERVICES[options.service])
        self.service.rate = options.load or self.service.rate
        if options.request:
            self.service.request, self.service.prepare = options.request, options.prepare or ""
        self.image = SERVICE_IMAGE
        if options.image:
            with tarfile.open(options.image) as archive:
                self.image = json.load(archive.extractfile("manifest.json"))[0]["RepoTags"][0]

    def start(self, command, log):
        """A program that stop() ends, with its output in `log`."""
        with open(self.work / log, "w", encoding="utf-8") as out:
            self.started.append(subprocess.Popen([str(word) for word in command], stdout=out, stderr=out))
        return self.started[-1]

    def stop(self):
        """Ends the pods together, then qrmd."""
        pods, others = self.started[1:], self.started[:1]
        self.started = []
        for group in (pods, others):
            for process in group:
                process.terminate()
            for process in group:
                process.wait()
        for directory in sorted((controller("cpu") / self.kubepods.lstrip("/")).rglob("*"), reverse=True):
            if directory.is_dir():
                remove_cgroup(directory)

    def await_true(self, what, check, process=None):
        deadline = time.monotonic() + 60
        while not check():
            if time.monotonic() > deadline or (process and process.poll() is not None):
                logs = "\n".join(f"{log.name}: {log.read_text()[-2000:]}" for log in self.work.glob("*.log"))
                sys.exit(f"worth.sh: {what}; the ends of the logs:\n{logs}")
            time.sleep(0.02)

    def start_qrmd(self, way):
        state = self.work / "qrmd"
        subprocess.run(["rm", "-rf", state], check=True)
        state.mkdir()
        (self.work / "qrmd.yaml").write_text(json.dumps({"plugins": {"cpu": way.cpu}, "builtin-plugins": ["cpu"]} | way.keys))
        places = {key: state / key for key in ("state-dir", "registration-dir", "plugins-registry-dir")}
        places |= {"pod-resources-socket": state / "resources.sock", "control-socket": state / "control.sock",
                   "nri-socket": os.environ["QRM_NRI_SOCKET"], "cri-socket": os.environ["QRM_CRI_SOCKET"],
                   "config": self.work / "qrmd.yaml"} | dict.fromkeys(
                       ("metrics-address", "probe-address", "kubelet-state-dir", "kubelet-pods-socket",
                        "kubelet-pod-resources-socket"), "")
        qrmd = self.start([self.bin / "bin/qrmd", *(f"--{key}={value}" for key, value in places.items())], "qrmd.log")
        os.environ["QRM_CONTROL_SOCKET"] = str(state / "control.sock")
        self.await_true("qrmd does not get ready", lambda: "Ready:       yes" in subprocess.run(
            [self.bin / "bin/qrmctl", "status"], capture_output=True, text=True, check=False).stdout, qrmd)

    def play(self, name, file, parent, uid):
        pod = self.start([self.bin / "bin/qrmctl", "play", "--wait", "-f", file, "--runtime-endpoint",
                          os.environ["QRM_CRI_SOCKET"], "--cgroup-parent", parent, "--uid", uid], f"{name}.log")
        self.await_true(f"the pod {name} does not start", lambda: "It runs until" in (self.work / f"{name}.log").read_text(), pod)

    def start_pod(self, work, image, command, cpus, qos):
        """Returns its cgroup."""
        uid = str(uuid.uuid4())
        resources = {"guaranteed": {"limits": {"cpu": cpus, "memory": "512Mi"}}, "burstable": {"requests": {"cpu": cpus}},
                     "besteffort": {}}[qos]
        of_qos = self.kubepods + {"guaranteed": "", "burstable": "/burstable", "besteffort": "/besteffort"}[qos]
        pod = {"apiVersion": "v1", "kind": "Pod",
               "metadata": {"name": work, "namespace": work, "labels": {"work": work}},
               "spec": {"containers": [{"name": "main", "image": image, "command": command, "resources": resources}]}}
        (self.work / f"{work}.yaml").write_text(json.dumps(pod))
        make_cgroup(f"{of_qos}/pod{uid}", 2 if qos == "besteffort" else 1024 * cpus, 100_000 * cpus if qos == "guaranteed" else 0)
        self.play(work, self.work / f"{work}.yaml", f"{of_qos}/pod{uid}", uid)
        return f"{of_qos}/pod{uid}"

    def start_service(self, way):
        batch_cpus = max(CPUS - 1, 1)
        make_cgroup(self.kubepods, 1024 * CPUS)
        make_cgroup(self.kubepods + "/burstable", 1024 * ((way.service == "burstable") + batch_cpus * (way.batch == "burstable")) or 2)
        make_cgroup(self.kubepods + "/besteffort", 2)
        if not self.options.pod:
            return self.start_pod("service", self.image, [] if self.options.image else self.service.command, 1, way.service)
        pod = self.kubepods + ("" if way.service == "guaranteed" else "/burstable") + "/podservice"
        make_cgroup(pod, 1024)
        self.play("service", self.options.pod, pod, "service")
        return pod

    def start_batch(self, qos):
        """Returns its cgroup and the file that grows by a byte for each job."""
        job = BATCHES[self.options.batch]
        loop = f"for i in {' '.join(map(str, range(CPUS)))}; do while :; do {job}; echo >>/count; done & done; wait"
        cgroup = self.start_pod("batch", BATCH_IMAGE, ["/bin/sh", "-c", loop], max(CPUS - 1, 1), qos)
        found = []

        def find():
            found.extend(count for pid in processes(cgroup) if (count := pathlib.Path(f"/proc/{pid}/root/count")).exists())
            return found

        self.await_true("the batch work does not run", find)
        # That of the first process, which lives as long as the pod.
        return cgroup, found[0]

    def load_cpu(self, service):
        """One that the service has not, so that the load disturbs it least; CPU 0 if the service may use all."""
        return min(set(range(CPUS)) - set(cpus_of(service)), default=0)

    def run(self, way, seconds):
        self.start_qrmd(way)
        service = self.start_service(way)
        batch, count = self.start_batch(way.batch) if way.batch else (None, None)
        out = self.work / "answers"
        command = [self.bin / "bench/open_loop", "--port", self.options.port, "--request", self.service.request, "--rate",
                   self.service.rate, "--seconds", seconds + 1, "--answer", self.answer, "--out", out,
                   "--cpu", self.load_cpu(service)]
        if self.service.prepare:
            command += ["--prepare", self.service.prepare]
        load = subprocess.Popen([str(word) for word in command], stderr=subprocess.PIPE, text=True)
        begun = load.stderr.readline().split()
        if not begun or begun[0] != "begin":
            sys.exit(f"worth.sh: {' '.join(begun)}; the service's log: {(self.work / 'service.log').read_text()[-2000:]}")
        self.answer, self.priority = int(begun[1]), begun[2]

        def sample():
            return [time.monotonic(), *machine_times(), *usage(service), *([0, 0] if batch is None else usage(batch)),
                    0 if count is None else os.stat(count).st_size]

        time.sleep(1)
        before = sample()
        time.sleep(seconds)
        took, idle, steal, every, cpu, throttled, batch_cpu, batch_throttled, jobs = (
            after - early for after, early in zip(sample(), before))
        if load.wait() != 0:
            sys.exit(f"worth.sh: the load failed: {load.stderr.read()}")
        given = {"service_cpuset": cpus_of(service), "batch_cpuset": cpus_of(batch) if batch else [],
                 "batch_idle": batch is not None and (controller("cpu") / batch.lstrip("/") / "cpu.idle").read_text() == "1\n"}
        self.stop()
        answers = [tuple(map(int, line.split())) for line in out.read_text().splitlines()]
        return report.latencies(answers, 1) | given | {
            "work": jobs / took if batch else None, "service_cpus": cpu / took, "batch_cpus": batch_cpu / took,
            "busy": 100 * (1 - idle / every), "idle": CPUS * idle / every, "steal": 100 * steal / every,
            "throttled": (throttled + batch_throttled) / took}


def remove_cgroup(directory):
    """In all hierarchies: runc makes the same path in each."""
    inside = directory.relative_to(controller("cpu"))
    for hierarchy in pathlib.Path("/sys/fs/cgroup").iterdir() if V1 else [controller("")]:
        for _ in range(50):
            try:
                (hierarchy / inside).rmdir()
            except FileNotFoundError:
                break
            except OSError:
                time.sleep(0.02)


# --- the machine itself --------------------------------------------------------------------------------------------------

def measure_others(seconds=2):
    """Which part of the CPUs other programs use."""
    before = machine_times()
    time.sleep(seconds)
    idle, _, every = (after - early for after, early in zip(machine_times(), before))
    return 100 * (1 - idle / every)


def measure_gaps(node, seconds=5):
    """For how long the machine takes a busy CPU from a program that nothing in it may interrupt."""
    others = measure_others()
    restore = pathlib.Path(os.environ["QRM_WORK_DIR"]) / "restore"
    if not os.path.exists("/sys/kernel/debug/sched"):
        subprocess.run(["mount", "-t", "debugfs", "none", "/sys/kernel/debug"], check=False)  # in this mount namespace
    settings = {"/proc/sys/kernel/sched_rt_runtime_us": "-1"}
    settings |= {str(file): "0" for file in pathlib.Path("/sys/kernel/debug/sched/fair_server").glob("cpu*/runtime")}
    former, rejected = {}, []
    for path, value in settings.items():
        try:
            former[path] = pathlib.Path(path).read_text().strip()
            restore.write_text("".join(f"{former[path]} {path}\n" for path in former))
            pathlib.Path(path).write_text(value)
        except OSError:
            rejected.append(path)
    try:
        command = [node.bin / "bench/open_loop", "--gaps", str(seconds), "--cpu", str(CPUS - 1)]
        count, longest, priority = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    finally:
        for path, value in former.items():
            if path not in rejected:
                pathlib.Path(path).write_text(value)
        restore.unlink(missing_ok=True)
    on = [what for what, part in (("real-time throttling", "sched_rt"), ("the fair server", "fair_server"))
          if any(part in path for path in rejected) or not any(part in path for path in settings)]
    protection = f"{' and '.join(on)} stayed on, which this machine does not permit to change" if on else \
        "real-time throttling and the fair server were off meanwhile"
    text = (f"{'The machine is not quiet: before' if others > 10 else 'Before'} the first round, other programs used {others:.0f} % of the "
            f"CPUs. The machine itself: in {seconds} s beside busy CPUs, a {priority} program that only looks at the clock was not run for "
            f"1 ms or longer {count} times, at most for {int(longest) / 1000:.1f} ms ({protection}).")
    return {"busy_before": others, "seconds": seconds, "gaps": int(count), "longest_us": int(longest), "priority": priority, "text": text}


def main():
    options = read_arguments(sys.argv[1:])
    if options.needs:
        print("none" if options.image or options.pod else SERVICES[options.service].program, options.batch, options.image or "")
        return
    for ending in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(ending, lambda *_: sys.exit(143))
    out = pathlib.Path(options.out)
    out.mkdir(parents=True, exist_ok=True)
    begin = time.monotonic()
    node = Node(options)
    titles = {way: of.title for way, of in WAYS.items()}
    plays = []
    try:
        gaps = measure_gaps(node)
        print(gaps["text"], flush=True)
        node.run(WAYS[options.ways[0]], 1)  # does not count: the images come into memory, and the answers' length is learnt
        print(f"seed {options.seed}, {options.rounds} rounds of {len(options.ways)} ways, {options.seconds} s each", flush=True)
        for number in range(options.rounds):
            for way in report.order(options.ways, options.seed, number):
                plays.append({"way": way, "round": number} | node.run(WAYS[way], options.seconds))
                now = plays[-1]
                print(f"{time.monotonic() - begin:5.0f} s  round {number + 1}  ({way:2}) p90 {now['p90']:7,} µs  p99 {now['p99']:9,.0f} µs"
                      f"  work {now['work'] or 0:6.1f}/s  busy {now['busy']:3.0f} %  steal {now['steal']:4.1f} %", flush=True)
    finally:
        node.stop()
    write_report(options, node, gaps, plays, titles, out, time.monotonic() - begin)


def write_report(options, node, gaps, plays, titles, out, took):
    summary = report.summarise(plays, options.ways)
    cpus = report.spread([play["service_cpus"] for play in plays])
    name = options.image or options.pod or options.service
    text = "\n\n".join([
        report.losses(summary, titles, ("b", "be")),
        f"{name} at {node.service.rate} requests a second ({cpus['median']:.2f} of one CPU), {options.batch} beside it on {CPUS} CPUs; "
        f"medians (and ranges) of {options.rounds} rounds of {options.seconds} s; the load has {node.priority} priority on a CPU that the "
        f"service does not own. Seed {options.seed}; {took:.0f} s. A window of a second is bad if its p99 is over {report.BAD} × that of "
        f"({options.ways[0]}). × compares with (a), for work with (b).",
        gaps["text"],
        report.table(summary, titles),
        f"p90: {report.ranking(summary, 'p90')}\n\np99: {report.ranking(summary, 'p99')}\n\nwork: {report.ranking(summary, 'work')}"])
    (out / "worth.md").write_text(text + "\n")
    (out / "worth.svg").write_text(report.picture(plays, summary, titles))
    for play in plays:
        del play["answers"]
    (out / "worth.json").write_text(json.dumps({"seed": options.seed, "service": name, "rate": node.service.rate, "batch": options.batch,
                                                "cpus": CPUS, "gaps": gaps, "ways": summary, "plays": plays}, indent=1) + "\n")
    print(f"\n{text}\n\nThe report is in {out.resolve()}: worth.md, worth.svg, worth.json")


if __name__ == "__main__":
    main()
