"""Inspect logs: archives in both layouts and both compressions, and the same as JSON."""

from __future__ import annotations

import json
import struct
import zipfile
import zlib
from pathlib import Path
from typing import Any

import zstandard


def inspect_events() -> list[Any]:
    reply = {
        "role": "assistant",
        "content": [{"type": "reasoning", "reasoning": "hm"}, {"type": "text", "text": "attachment://abc1"}],
        "tool_calls": [{"id": "c1", "function": "bash", "arguments": {"cmd": "ls"}, "type": "function"}],
    }
    usage = {"input_tokens": 10, "output_tokens": 3, "input_tokens_cache_read": 4, "total_tokens": 17}
    base = {"timestamp": "2026-06-10T18:23:50.198559+00:00", "working_start": 1.0, "span_id": "s"}
    return [
        {**base, "event": "span_begin", "id": "s", "type": "init", "name": "init", "uuid": "1"},
        {
            **base,
            "event": "sample_init",
            "sample": {"input": "attachment://abc0", "target": "t", "id": 1},
            "state": {},
            "uuid": "2",
        },
        {
            **base,
            "event": "model",
            "model": "model-x",
            "input": [],
            "output": {"model": "model-x", "choices": [{"message": reply}], "usage": usage},
            "completed": "2026-06-10T18:23:51+00:00",
            "uuid": "3",
        },
        {
            **base,
            "event": "tool",
            "id": "c1",
            "function": "bash",
            "arguments": {"cmd": "ls"},
            "result": "stats.py",
            "error": None,
            "uuid": "4",
        },
        {
            **base,
            "event": "sandbox",
            "action": "exec",
            "cmd": "ls",
            "result": 0,
            "output": "x",
            "completed": "2026-06-10T18:23:52+00:00",
        },
        {**base, "event": "never_seen", "x": 1, "uuid": "5"},
        {
            **base,
            "event": "score",
            "score": {"value": "C", "answer": "a", "explanation": "e"},
            "target": "t",
            "uuid": "6",
        },
        {
            **base,
            "event": "model",
            "model": "model-x",
            "output": {"choices": [{"message": {**reply, "tool_calls": [{"id": "c2", "function": "bash"}]}}]},
            "uuid": "7",
        },
    ]


def inspect_sample(number: int) -> dict[str, Any]:
    return {
        "id": number,
        "epoch": 1,
        "input": "Fix",
        "target": "t",
        "messages": [
            {"role": "user", "content": "Fix"},
            {"role": "tool", "tool_call_id": "c2", "content": "from the conversation"},
        ],
        "scores": {"match": {"value": "C", "answer": "a"}},
        "store": {},
        "events": inspect_events(),
        "model_usage": {"model-x": {"input_tokens": 10, "output_tokens": 3}},
        "total_time": 2.5,
        "attachments": {"abc0": "Fix the mean", "abc1": "I will look"},
    }


def inspect_header() -> dict[str, Any]:
    return {
        "version": 2,
        "status": "success",
        "eval": {"task": "some", "model": "vendor/model-x"},
        "plan": {},
        "results": {},
        "stats": {},
    }


def _zstd_member(archive: zipfile.ZipFile, name: str, data: bytes) -> None:
    """Write a member packed with Zstandard (method 93), which `zipfile` can't write, by changing headers."""
    packed = zstandard.ZstdCompressor().compress(data)
    info = zipfile.ZipInfo(name)
    at = archive.fp.tell()  # type: ignore[union-attr]
    archive.writestr(info, packed)
    info.compress_type, info.file_size, info.CRC = 93, len(data), zlib.crc32(data)
    end = archive.fp.tell()  # type: ignore[union-attr]
    archive.fp.seek(at + 8)  # type: ignore[union-attr]
    archive.fp.write(struct.pack("<H", 93))  # type: ignore[union-attr]
    archive.fp.seek(end)  # type: ignore[union-attr]


def inspect_archive(path: Path, *, zstd: bool = False, finished: bool = True) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:

        def put(name: str, value: Any) -> None:
            data = json.dumps(value).encode()
            _zstd_member(archive, name, data) if zstd else archive.writestr(name, data)

        put("_journal/start.json", {key: inspect_header()[key] for key in ("version", "eval", "plan")})
        put("samples/1_epoch_1.json", inspect_sample(1))
        put("samples/2_epoch_1.json", inspect_sample(2))
        put("_journal/summaries/1.json", [{"id": 1, "epoch": 1, "scores": {"match": {"value": "C"}}}])
        if finished:
            put(
                "summaries.json", [{"id": n, "epoch": 1, "scores": {"match": {"value": "C"}}} for n in (1, 2)]
            )
            put("header.json", inspect_header())
    return path


def inspect_chunked(path: Path) -> Path:
    events = json.loads(json.dumps(inspect_events()).replace("attachment://abc", "attachment://"))
    shell = {
        key: value
        for key, value in inspect_sample(1).items()
        if key not in ("events", "messages", "attachments")
    }
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        folder = "samples/1_epoch_1"
        archive.writestr("_journal/start.json", json.dumps({"version": 2, "eval": inspect_header()["eval"]}))
        archive.writestr(f"{folder}/sample.json", json.dumps({**shell, "message_refs": [[0, 1]]}))
        archive.writestr(f"{folder}/messages/0.json", json.dumps(inspect_sample(1)["messages"]))
        archive.writestr(f"{folder}/events/4.json", json.dumps(events[4:]))
        archive.writestr(f"{folder}/events/0.json", json.dumps(events[:4]))
        archive.writestr(f"{folder}/events/stats.json", "{}")
        archive.writestr(f"{folder}/attachments/0.json", json.dumps(["Fix the mean"]))
        archive.writestr(f"{folder}/attachments/1.json", json.dumps(["I will look"]))
        archive.writestr("header.json", json.dumps(inspect_header()))
    return path
