#!/usr/bin/env python3
"""A compute driver in Python, of the published protos alone: gives the first CPUs that it may.

driver.py SOCKET, with the generated modules on PYTHONPATH."""
import concurrent.futures
import os
import signal
import sys
import threading

import grpc

from cci.v1alpha1 import cci_pb2, cci_pb2_grpc
from pluginregistration.v1 import api_pb2, api_pb2_grpc


def cpus_of(text):
    """The CPUs of the kernel's list form, ascending."""
    cpus = []
    for item in filter(None, text.split(",")):
        first, _, last = item.partition("-")
        cpus.extend(range(int(first), int(last or first) + 1))
    return cpus


class Driver(cci_pb2_grpc.CCIDriverServicer):
    def __init__(self):
        self.lock = threading.Lock()
        self.held = {}

    def cciGetOptions(self, request, context):
        return cci_pb2.OptionsResponse(needs_add=True, resizes=True)

    def cciAdmit(self, request, context):
        if not request.pod_uid or not request.container:
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, "pod_uid and container must be set")
        key = (request.pod_uid, request.container)
        with self.lock:
            cpus = "" if request.current_cpus else self.held.get(key, "")
            if not cpus:
                # What a running container has comes first: it loses some of these, or gets further ones.
                current = cpus_of(request.current_cpus)
                available = current + [cpu for cpu in cpus_of(request.availablecpus) if cpu not in current]
                wanted = request.requested_milli_cpus // 1000
                if not 0 < wanted <= len(available):
                    return cci_pb2.AdmitResponse(err=f"{wanted} CPUs of {len(available)}; request fewer")
                cpus = ",".join(map(str, sorted(available[:wanted])))
            if not request.current_cpus:
                self.held[key] = cpus  # else cciAddContainerResource says whether it is changed
        return cci_pb2.AdmitResponse(
            rset=cci_pb2.ResourceSet(cpuset=cpus, exclusive=True), envs={"PYTHON_CPUS": cpus})

    def cciAddContainerResource(self, request, context):
        with self.lock:
            self.held[request.pod_uid, request.container] = request.cpuset
        return cci_pb2.AddResourceResponse()

    def cciRemoveContainerResource(self, request, context):
        with self.lock:
            for key in [key for key in self.held
                        if key[0] == request.pod_uid and request.container in ("", key[1])]:
                del self.held[key]
        return cci_pb2.RemoveResourceResponse()


class Identity(api_pb2_grpc.RegistrationServicer):
    def GetInfo(self, request, context):
        return api_pb2.PluginInfo(type="CCIDriver", name="python", supported_versions=["v1alpha1"])

    def NotifyRegistrationStatus(self, request, context):
        return api_pb2.RegistrationStatusResponse()


def main():
    socket = sys.argv[1]
    # No client is to call before it listens.
    hidden = os.path.join(os.path.dirname(socket), "." + os.path.basename(socket))
    server = grpc.server(concurrent.futures.ThreadPoolExecutor())
    cci_pb2_grpc.add_CCIDriverServicer_to_server(Driver(), server)
    api_pb2_grpc.add_RegistrationServicer_to_server(Identity(), server)
    server.add_insecure_port("unix:" + hidden)
    server.start()
    os.rename(hidden, socket)
    signal.signal(signal.SIGTERM, lambda *_: server.stop(0))
    server.wait_for_termination()


if __name__ == "__main__":
    main()
