"""The blob store in S3, as a server that isn't Amazon's offers it: moto's, on loopback."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from moto.server import ThreadedMotoServer

from kdyno.fleet.blobs import Blobs
from kdyno.fleet.errors import BlobDiffers, BlobMissing, BlobStoreFailed

BUCKET = "kdyno"
LARGE = 6 << 20
"""Bytes: more than are read at a time."""


@pytest.fixture
def blobs(monkeypatch: pytest.MonkeyPatch) -> Iterator[Blobs]:
    import boto3
    from s3fs import S3FileSystem

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    variables = {"ACCESS_KEY_ID": "a", "SECRET_ACCESS_KEY": "b", "DEFAULT_REGION": "us-east-1"}
    for name, value in {**variables, "ENDPOINT_URL": f"http://{host}:{port}", "MAX_ATTEMPTS": "1"}.items():
        monkeypatch.setenv(f"AWS_{name}", value)
    S3FileSystem.clear_instance_cache()
    boto3.client("s3").create_bucket(Bucket=BUCKET)
    yield Blobs(f"s3://{BUCKET}/images")
    server.stop()
    S3FileSystem.clear_instance_cache()


def test_a_file_in_s3_comes_back_is_listed_and_is_removed(blobs: Blobs, tmp_path: Path) -> None:
    blobs.check()
    file, back = tmp_path / "file", tmp_path / "back"
    file.write_bytes(b"kdyno" * (LARGE // 5))
    digest = blobs.put(file)
    assert digest == blobs.put(file) and blobs.has(digest)
    blobs.get(digest, back)
    assert back.read_bytes() == file.read_bytes()
    [kept] = [blob for blob in blobs.listing() if blob.digest == digest]
    assert kept.size == file.stat().st_size
    blobs.remove(kept)
    assert not blobs.has(digest)
    with pytest.raises(BlobMissing):
        blobs.get(digest, back)


def test_a_file_in_s3_that_does_not_match_its_name_is_refused(blobs: Blobs, tmp_path: Path) -> None:
    import boto3

    (tmp_path / "file").write_bytes(b"content")
    digest = blobs.put(tmp_path / "file")
    boto3.client("s3").put_object(Bucket=BUCKET, Key=f"images/{digest[:2]}/{digest}", Body=b"contenT")
    with pytest.raises(BlobDiffers):
        blobs.get(digest, tmp_path / "back")


def test_a_bucket_that_is_not_there_and_a_server_that_does_not_answer_are_said(
    blobs: Blobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    from s3fs import S3FileSystem

    with pytest.raises(BlobStoreFailed, match="bucket does not exist"):
        Blobs("s3://no-such-bucket/images").check()
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    S3FileSystem.clear_instance_cache()
    with pytest.raises(BlobStoreFailed, match=r"127\.0\.0\.1:9"):
        Blobs(blobs.where).check()
