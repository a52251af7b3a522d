#!/usr/bin/env python3
"""Gives each container one of four accelerator lanes: a resource plugin that uses only the published protos.

lane_plugin.py DIRECTORY STATE_FILE, with the generated modules on PYTHONPATH: qrmd watches DIRECTORY."""
import concurrent.futures
import json
import os
import signal
import sys
import threading

import grpc

from pluginregistration.v1 import api_pb2 as registration, api_pb2_grpc as registration_grpc
from resourceplugin.v1alpha1 import api_pb2 as plugin, api_pb2_grpc as plugin_grpc

RESOURCE = "example.com/lane"
LANES = 4


class Lanes(plugin_grpc.ResourcePluginServicer):
    def __init__(self, path):
        self.path = path
        self.lock = threading.Lock()
        self.lanes = {}  # pod UID -> container -> lane
        if os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                self.lanes = json.load(file)

    def keep(self):
        """Writes to disk before the answer is sent: an answer is never revoked."""
        with open(self.path + ".new", "w", encoding="utf-8") as file:
            json.dump(self.lanes, file)
            file.flush()
            os.fsync(file.fileno())
        os.rename(self.path + ".new", self.path)

    def given(self, lane):
        return plugin.ResourceAllocation(resource_allocation={RESOURCE: plugin.ResourceAllocationInfo(
            is_scalar_resource=True, allocated_quantity=1, envs={"LANE": str(lane)})})

    def GetResourcePluginOptions(self, request, context):
        return plugin.ResourcePluginOptions(need_reconcile=True)

    def Allocate(self, request, context):
        if not request.pod_uid:
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, "cannot give a lane: the request names no pod")
        with self.lock:
            pod = self.lanes.setdefault(request.pod_uid, {})
            if request.container_name not in pod:  # a repeated request gets the same lane
                taken = {lane for held in self.lanes.values() for lane in held.values()}
                free = [lane for lane in range(LANES) if lane not in taken]
                if not free:
                    context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "cannot give a lane: all are taken")
                pod[request.container_name] = free[0]
                self.keep()
            lane = pod[request.container_name]
        return plugin.ResourceAllocationResponse(
            pod_uid=request.pod_uid, pod_namespace=request.pod_namespace, pod_name=request.pod_name,
            container_name=request.container_name, container_type=request.container_type,
            container_index=request.container_index, resource_name=RESOURCE, allocation_result=self.given(lane))

    def RemovePod(self, request, context):
        with self.lock:
            if self.lanes.pop(request.pod_uid, None) is not None:
                self.keep()
        return plugin.RemovePodResponse()

    def GetResourcesAllocation(self, request, context):
        with self.lock:
            return plugin.GetResourcesAllocationResponse(pod_resources={
                uid: plugin.ContainerResources(
                    container_resources={name: self.given(lane) for name, lane in pod.items()})
                for uid, pod in self.lanes.items()})


class Registration(registration_grpc.RegistrationServicer):
    def GetInfo(self, request, context):
        return registration.PluginInfo(type="ResourcePlugin", name=RESOURCE, supported_versions=["v1alpha1"])

    def NotifyRegistrationStatus(self, request, context):
        print("registered" if request.plugin_registered else f"rejected: {request.error}", flush=True)
        return registration.RegistrationStatusResponse()


def main(directory, state_file):
    server = grpc.server(concurrent.futures.ThreadPoolExecutor(max_workers=4))
    plugin_grpc.add_ResourcePluginServicer_to_server(Lanes(state_file), server)
    registration_grpc.add_RegistrationServicer_to_server(Registration(), server)
    socket = os.path.join(directory, RESOURCE.replace("/", "_") + ".sock")
    hidden = os.path.join(directory, f".{os.getpid()}.sock")
    server.add_insecure_port("unix:" + hidden)
    server.start()
    os.rename(hidden, socket)  # visible only once it accepts calls
    signal.sigwait([signal.SIGINT, signal.SIGTERM])
    os.unlink(socket)
    server.stop(1).wait()


if __name__ == "__main__":
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT, signal.SIGTERM])
    main(*sys.argv[1:])
