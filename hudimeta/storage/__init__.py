"""Bytes outside: the only package that opens anything."""

from hudimeta.storage.counting import CountingStorage, Request, RequestKind, RequestLog, kept_by, purpose_of
from hudimeta.storage.inside import check_native_files, is_inside
from hudimeta.storage.local import LocalStorage, in_one_go, is_on_disk
from hudimeta.storage.local_names import TEMPORARY_SUFFIX
from hudimeta.storage.locate import absolute_location, open_storage
from hudimeta.storage.protocol import FileInfo, OutputStream, Storage, join, put_own
from hudimeta.storage.staged import BeforeNamed, HeldFiles, NewFile, Staged

__all__ = [
    "TEMPORARY_SUFFIX",
    "BeforeNamed",
    "CountingStorage",
    "FileInfo",
    "HeldFiles",
    "LocalStorage",
    "NewFile",
    "OutputStream",
    "Request",
    "RequestKind",
    "RequestLog",
    "Staged",
    "Storage",
    "absolute_location",
    "at_once",  # many small requests at once
    "check_native_files",
    "in_one_go",
    "is_on_disk",
    "is_inside",
    "join",
    "kept_by",
    "open_storage",
    "purpose_of",
    "put_own",
]
