"""Starts `interlock serve` with development parameters and connects a client to it."""

import importlib
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

import grpc
import pytest
from grpc_tools import protoc

HERE = pathlib.Path(__file__).parent
ROOT = HERE.parents[2]
INTERLOCK = os.environ.get("INTERLOCK", str(ROOT / "bin" / "interlock"))
KINDS = ["winning-post", "window-post", "update", "porep"]


@pytest.fixture(scope="session")
def pb(tmp_path_factory):
    """The messages and the client of the contract."""
    out = tmp_path_factory.mktemp("generated")
    assert protoc.main(["", f"-I{HERE}", f"--python_out={out}", f"--grpc_python_out={out}", "contract.proto"]) == 0
    sys.path.insert(0, str(out))
    messages = importlib.import_module("contract_pb2")
    messages.Stub = importlib.import_module("contract_pb2_grpc").ProvingEngineStub
    return messages


@pytest.fixture(scope="session")
def params(tmp_path_factory):
    """A folder with development parameters of all kinds at 2 KiB."""
    if made := os.environ.get("INTERLOCK_TEST_PARAMS"):
        return made
    folder = tmp_path_factory.mktemp("params")
    for kind in KINDS:
        subprocess.run([INTERLOCK, "params", "setup", kind, "2KiB", "--insecure-dev", "--dir", folder], check=True, timeout=1200)
    return str(folder)


class Server:
    """A running `interlock serve`."""

    def __init__(self, params, log, *flags):
        self.log = log
        with open(log, "w") as out:
            self.process = subprocess.Popen(
                [INTERLOCK, "serve", "--params", params, "--grpc-listen", "127.0.0.1:0", "--http-listen", "127.0.0.1:0", *flags],
                stdout=out, stderr=out, cwd=os.path.dirname(log))
        self.grpc = self.wait_for(r"serving cuzk.v1: address=(\S+)")
        self.http = self.wait_for(r"serving metrics and status page: address=(\S+)")

    def wait_for(self, pattern):
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            text = pathlib.Path(self.log).read_text()
            if found := re.search(pattern, text):
                return found.group(1)
            assert self.process.poll() is None, text
            time.sleep(0.05)
        raise AssertionError(text)

    def connect(self):
        """A channel with the options that Curio's client has."""
        limit = 256 << 20
        return grpc.insecure_channel(self.grpc, options=[
            ("grpc.max_receive_message_length", limit), ("grpc.max_send_message_length", 2 * limit),
            ("grpc.use_local_subchannel_pool", 1)])

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=120)


@pytest.fixture(scope="session")
def server(params, tmp_path_factory):
    s = Server(params, str(tmp_path_factory.mktemp("serve") / "log"))
    yield s
    assert s.stop() == 0, pathlib.Path(s.log).read_text()


@pytest.fixture
def channel(server):
    with server.connect() as c:
        yield c


@pytest.fixture
def client(pb, channel):
    return pb.Stub(channel)
