"""The cuzk.v1 contract, as a client that knows nothing but the contract sees it."""

import concurrent.futures
import json
import os
import socket
import subprocess
import time
import urllib.request

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase

from conftest import INTERLOCK, ROOT, Server

INPUTS = ROOT / "examples" / "inputs"


def case(name):
    folder = INPUTS / f"{name}-2KiB"
    return folder, json.loads((folder / "case.json").read_text())


def winning(pb, **changes):
    folder, c = case("winning")
    fields = dict(
        request_id="winning-1", proof_kind=pb.WINNING_POST, sector_size=c["sector_size"], registered_proof=0,
        priority=pb.CRITICAL, vanilla_proofs=[(folder / s["vanilla_proof"]).read_bytes() for s in c["sectors"]],
        miner_id=c["miner_id"], randomness=bytes.fromhex(c["randomness"]))
    return pb.SubmitProofRequest(**{**fields, **changes})


def window(pb, partition, **changes):
    folder, c = case("window")
    files = window_files(partition)
    fields = dict(
        request_id=f"window-{partition}", proof_kind=pb.WINDOW_POST_PARTITION, sector_size=c["sector_size"], registered_proof=10,
        priority=pb.HIGH, vanilla_proofs=[f.read_bytes() for f in files], miner_id=c["miner_id"],
        randomness=bytes.fromhex(c["randomness"]), partition_index=partition)
    return pb.SubmitProofRequest(**{**fields, **changes})


def window_files(partition):
    """Two sectors a partition at this size, in ascending order."""
    folder, c = case("window")
    sectors = sorted(c["sectors"], key=lambda s: s["sector_number"])
    return [folder / s["vanilla_proof"] for s in sectors[2 * partition:2 * partition + 2]]


def update(pb, **changes):
    folder, c = case("update")
    fields = dict(
        request_id="update-1", proof_kind=pb.SNAP_DEALS_UPDATE, sector_size=c["sector_size"], registered_proof=0,
        vanilla_proofs=[(folder / v).read_bytes() for v in c["vanilla_proofs"]], miner_id=c["miner_id"],
        sector_number=c["sector_number"], **{k: bytes.fromhex(c[k]) for k in ("comm_r_old", "comm_r_new", "comm_d_new")})
    return pb.SubmitProofRequest(**{**fields, **changes})


def porep(pb, **changes):
    folder, c = case("porep")
    fields = dict(
        request_id=f"porep-{c['miner_id']}-{c['sector_number']}", proof_kind=pb.POREP_SEAL_COMMIT, sector_size=c["sector_size"],
        registered_proof=c["registered_proof"], vanilla_proof=(folder / "c1-wrapped.json").read_bytes(),
        miner_id=c["miner_id"], sector_number=c["sector_number"])
    return pb.SubmitProofRequest(**{**fields, **changes})


def verify(params, tmp_path, proof, *args):
    """The operator's tool is the judge of a proof."""
    file = tmp_path / "proof.bin"
    file.write_bytes(proof)
    command = [INTERLOCK, "verify", args[0], "--params", params, "--proof", file, *args[1:]]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=tmp_path).stdout.strip()


def completed(pb, result):
    assert result.status == pb.AwaitProofResponse.COMPLETED, result.error_message
    assert len(result.proof) == 192 and result.total_ms > 0 and result.synthesis_ms > 0 and result.gpu_compute_ms > 0
    return result.proof


def post_flags(name):
    _, c = case(name)
    return ["--sector-size", "2KiB", "--miner-id", str(c["miner_id"]), "--randomness", c["randomness"]]


def test_winning_post(pb, client, params, tmp_path):
    submitted = client.SubmitProof(winning(pb))
    assert submitted.job_id
    proof = completed(pb, client.AwaitProof(pb.AwaitProofRequest(job_id=submitted.job_id)))
    folder, c = case("winning")
    files = [folder / s["vanilla_proof"] for s in c["sectors"]]
    assert verify(params, tmp_path, proof, "winning-post", *post_flags("winning"), *files) == "valid"
    spoilt = bytes([proof[0]]) + bytes([proof[1] ^ 1]) + proof[2:]
    assert verify(params, tmp_path, spoilt, "winning-post", *post_flags("winning"), *files) == "invalid"


@pytest.mark.parametrize("partition", [0, 1])
def test_window_post(pb, client, params, tmp_path, partition):
    proof = completed(pb, client.Prove(pb.ProveRequest(submit=window(pb, partition))).result)
    flags = post_flags("window") + ["--api-version", "1.2.0", "--partition", str(partition)]
    assert verify(params, tmp_path, proof, "window-post", *flags, *window_files(partition)) == "valid"


def test_update(pb, client, params, tmp_path):
    proof = completed(pb, client.Prove(pb.ProveRequest(submit=update(pb))).result)
    folder, c = case("update")
    flags = ["--sector-size", "2KiB"] + [x for k in ("comm_r_old", "comm_r_new", "comm_d_new") for x in ("--" + k.replace("_", "-"), c[k])]
    assert verify(params, tmp_path, proof, "update", *flags, *[folder / v for v in c["vanilla_proofs"]]) == "valid"


def test_porep(pb, client, params, tmp_path):
    proof = completed(pb, client.Prove(pb.ProveRequest(submit=porep(pb))).result)
    folder, c = case("porep")
    assert verify(params, tmp_path, proof, "porep", "--miner-id", str(c["miner_id"]), folder / "c1-wrapped.json") == "valid"


def metric(text, name):
    return sum(float(line.rsplit(" ", 1)[1]) for line in text.splitlines() if line.startswith(name))


def proofs_made(pb, client):
    return metric(client.GetMetrics(pb.GetMetricsRequest()).prometheus_text, 'interlock_proofs_total{kind="winning-post",result="completed"}')


def test_fifty_equal_calls_are_one_proof(pb, server, client):
    before = proofs_made(pb, client)
    request = pb.ProveRequest(submit=winning(pb, request_id="fifty"))
    with concurrent.futures.ThreadPoolExecutor(50) as pool:
        results = list(pool.map(lambda _: client.Prove(request).result, range(50)))
    assert len({r.SerializeToString() for r in results}) == 1
    completed(pb, results[0])
    assert proofs_made(pb, client) == before + 1


def test_same_id_with_other_content_is_a_new_proof(pb, client):
    first = client.Prove(pb.ProveRequest(submit=window(pb, 0, request_id="again"))).result
    second = client.Prove(pb.ProveRequest(submit=window(pb, 1, request_id="again"))).result
    assert completed(pb, first) != completed(pb, second)
    assert first.job_id != second.job_id
    assert client.Prove(pb.ProveRequest(submit=window(pb, 0, request_id="again"))).result.proof == first.proof


def test_a_client_that_went_away_finds_its_job_again(pb, server):
    with server.connect() as gone:
        call = pb.Stub(gone).Prove.future(pb.ProveRequest(submit=window(pb, 0, request_id="reconnect")))
        with server.connect() as other:
            wait_until(lambda: pb.Stub(other).AwaitProof(pb.AwaitProofRequest(job_id="reconnect", timeout_ms=1)).status != pb.AwaitProofResponse.UNKNOWN)
        call.cancel()
    with server.connect() as back:
        answer = pb.Stub(back).AwaitProof(pb.AwaitProofRequest(job_id="reconnect"))
        again = pb.Stub(back).Prove(pb.ProveRequest(submit=window(pb, 0, request_id="reconnect"))).result
    assert completed(pb, answer) == again.proof


def wait_until(condition, seconds=30):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_timeout_and_unknown(pb, client):
    job = client.SubmitProof(window(pb, 0, request_id="slow")).job_id
    r = client.AwaitProof(pb.AwaitProofRequest(job_id=job, timeout_ms=1))
    assert r.status == pb.AwaitProofResponse.TIMEOUT and not r.proof
    completed(pb, client.AwaitProof(pb.AwaitProofRequest(job_id=job, timeout_ms=120_000)))
    assert client.AwaitProof(pb.AwaitProofRequest(job_id="nobody's", timeout_ms=1)).status == pb.AwaitProofResponse.UNKNOWN


def test_cancel(pb, client):
    jobs = [client.SubmitProof(window(pb, 0, request_id=f"cancel-{i}")).job_id for i in range(4)]
    started = time.monotonic()
    assert client.CancelProof(pb.CancelProofRequest(job_id=jobs[3])).was_running
    r = client.AwaitProof(pb.AwaitProofRequest(job_id=jobs[3]))
    assert r.status == pb.AwaitProofResponse.CANCELLED and not r.proof
    print(f"cancelled and answered in {1000 * (time.monotonic() - started):.1f} ms")
    assert not client.CancelProof(pb.CancelProofRequest(job_id=jobs[3])).was_running
    assert not client.CancelProof(pb.CancelProofRequest(job_id="nobody's")).was_running
    for job in jobs[:3]:
        completed(pb, client.AwaitProof(pb.AwaitProofRequest(job_id=job)))


@pytest.mark.parametrize("field, change", [
    ("proof_kind", dict(proof_kind=0)),
    ("registered_proof", dict(registered_proof=3)),  # of 32 GiB
    ("registered_proof", dict(registered_proof=5)),  # of window PoSt
    ("registered_proof", dict(sector_size=8 << 20)),
    ("randomness", dict(randomness=b"short")),
    ("vanilla", dict(vanilla_proofs=[])),
    ("vanilla", dict(vanilla_proofs=[b"not bincode"])),
    ("vanilla", dict(randomness=bytes(32))),  # other challenges
])
def test_bad_input_is_answered_failed(pb, client, field, change):
    r = client.Prove(pb.ProveRequest(submit=winning(pb, request_id="bad", **change))).result
    assert r.status == pb.AwaitProofResponse.FAILED and not r.proof
    assert field in r.error_message
    job = client.SubmitProof(winning(pb, request_id="bad", **change)).job_id
    assert client.AwaitProof(pb.AwaitProofRequest(job_id=job)).status == pb.AwaitProofResponse.FAILED


@pytest.mark.parametrize("number", [0, 10, 15])  # of 2 KiB all; the C1 is of a sector sealed with 1.1, which is 5
def test_registered_proof_of_another_seal_is_answered_failed(pb, client, number):
    r = client.Prove(pb.ProveRequest(submit=porep(pb, request_id="other seal", registered_proof=number))).result
    assert r.status == pb.AwaitProofResponse.FAILED and not r.proof
    assert "registered_proof" in r.error_message and "StackedDrg2KiBV1_1" in r.error_message


def test_size_may_be_left_to_the_registered_proof(pb, client):
    completed(pb, client.Prove(pb.ProveRequest(submit=winning(pb, request_id="sizeless", sector_size=0))).result)


def test_status(pb, client):
    # A PoRep holds the device for seconds, so that nothing else is done before it is counted.
    long = client.SubmitProof(porep(pb, request_id="status-long")).job_id
    wait_until(lambda: client.GetStatus(pb.GetStatusRequest()).gpus[0].current_proof_kind == "porep")
    jobs = [client.SubmitProof(window(pb, 1, request_id=f"status-{i}")).job_id for i in range(5)]
    s = client.GetStatus(pb.GetStatusRequest())
    assert sum(q.pending + q.in_progress for q in s.queues) == 6
    assert s.gpus[0].current_job_id
    assert {q.proof_kind for q in s.queues} == {"porep", "winning-post", "window-post", "update"}
    assert s.gpus and s.gpus[0].ordinal == 0 and s.gpus[0].name
    assert 0 < s.pinned_memory_limit_bytes
    for job in [long, *jobs]:
        completed(pb, client.AwaitProof(pb.AwaitProofRequest(job_id=job)))
    done = client.GetStatus(pb.GetStatusRequest())
    assert sum(q.pending + q.in_progress for q in done.queues) == 0
    assert done.total_proofs_completed == s.total_proofs_completed + 6
    assert any(p.circuit_id == "wpost-2k" and p.size_bytes > 0 for p in done.loaded_srs)


def test_preload_and_evict(pb, client):
    client.PreloadSRS(pb.PreloadSrsRequest(circuit_id="winning-2k"))
    assert client.PreloadSRS(pb.PreloadSrsRequest(circuit_id="winning-2k")).already_loaded
    evicted = client.EvictSRS(pb.EvictSrsRequest(circuit_id="winning-2k"))
    assert evicted.was_loaded and evicted.freed_bytes > 0
    assert not client.EvictSRS(pb.EvictSrsRequest(circuit_id="winning-2k")).was_loaded
    assert not client.PreloadSRS(pb.PreloadSrsRequest(circuit_id="winning-2k")).already_loaded
    for call, code in [("winning-3k", grpc.StatusCode.INVALID_ARGUMENT), ("winning-32g", grpc.StatusCode.FAILED_PRECONDITION)]:
        with pytest.raises(grpc.RpcError) as failed:
            client.PreloadSRS(pb.PreloadSrsRequest(circuit_id=call))
        assert failed.value.code() == code


def test_metrics_and_http(pb, server, client):
    text = client.GetMetrics(pb.GetMetricsRequest()).prometheus_text
    assert metric(text, "interlock_up ") == 1
    with urllib.request.urlopen(f"http://{server.http}/metrics") as page:
        assert b"interlock_proofs_total" in page.read()
    with urllib.request.urlopen(f"http://{server.http}/api/status") as page:
        assert json.load(page)["devices"]
    shown = subprocess.run([INTERLOCK, "status", "--http", server.http, "--json"], capture_output=True, check=True, timeout=30).stdout
    assert json.loads(shown)["devices"]


def test_health_and_reflection(channel):
    health = health_pb2_grpc.HealthStub(channel)
    for service in ["", "cuzk.v1.ProvingEngine"]:
        assert health.Check(health_pb2.HealthCheckRequest(service=service)).status == health_pb2.HealthCheckResponse.SERVING
    services = ProtoReflectionDescriptorDatabase(channel).get_services()
    assert "cuzk.v1.ProvingEngine" in services
    assert "Prove" in ProtoReflectionDescriptorDatabase(channel).FindFileContainingSymbol("cuzk.v1.ProvingEngine").service[0].method[2].name


def test_large_messages(pb, client):
    """255 MiB come through and are refused for what they hold; 300 MiB do not, with a clear status."""
    big = winning(pb, request_id="big", vanilla_proofs=[bytes(255 << 20)])
    r = client.Prove(pb.ProveRequest(submit=big)).result
    assert r.status == pb.AwaitProofResponse.FAILED and "vanilla" in r.error_message
    with pytest.raises(grpc.RpcError) as failed:
        client.Prove(pb.ProveRequest(submit=winning(pb, request_id="too big", vanilla_proofs=[bytes(300 << 20)])))
    assert failed.value.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
    assert "larger than max" in failed.value.details()


def test_garbage_on_the_port(pb, server, client):
    host, port = server.grpc.rsplit(":", 1)
    for data in [b"GET / HTTP/1.1\r\n\r\n", os.urandom(4096), b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + os.urandom(4096)]:
        with socket.create_connection((host, int(port))) as s:
            s.sendall(data)
            s.settimeout(20)
            try:
                while s.recv(4096):
                    pass
            except ConnectionResetError:
                pass  # hung up on, which is as good
    assert client.GetStatus(pb.GetStatusRequest()).uptime_seconds >= 0


def test_unix_socket_and_drain(pb, params, tmp_path):
    """A server on a unix socket that is told to end answers what is under way and takes nothing more."""
    path = tmp_path / "s"
    s = Server(params, str(tmp_path / "log"), "--grpc-listen", f"unix:{path}")
    assert path.stat().st_mode & 0o777 == 0o600
    with grpc.insecure_channel(f"unix:{path}") as channel:
        client = pb.Stub(channel)
        call = client.Prove.future(pb.ProveRequest(submit=window(pb, 0)))
        wait_until(lambda: client.AwaitProof(pb.AwaitProofRequest(job_id="window-0", timeout_ms=1)).status != pb.AwaitProofResponse.UNKNOWN)
        assert s.stop() == 0
        completed(pb, call.result().result)
