"""A handmade copy of what `nsys export -t sqlite` 2023.4.4 writes; nsys_real compares them."""

import sqlite3
from contextlib import closing
from itertools import count

EPOCH_NS = 1_795_381_246_603_545_858
_DEVICE = "start end deviceId contextId greenContextId streamId correlationId globalPid"
SCHEMA = {
    "StringIds": "id value",
    "ThreadNames": "nameId priority globalTid",
    "PROCESSES": "globalPid pid name",
    "TARGET_INFO_SESSION_START_TIME": "utcEpochNs utcTime localTime",
    "ANALYSIS_DETAILS": "globalVid duration startTime stopTime",
    "NVTX_EVENTS": "start end eventType rangeId category color text globalTid endGlobalTid textId "
    "domainId uint64Value int64Value doubleValue uint32Value int32Value floatValue jsonTextId "
    "jsonText",
    "OSRT_API": "start end eventClass globalTid nameId returnValue nestingLevel callchainId",
    "CUPTI_ACTIVITY_KIND_RUNTIME": "start end eventClass globalTid correlationId nameId "
    "returnValue callchainId",
    "CUPTI_ACTIVITY_KIND_KERNEL": f"{_DEVICE} demangledName shortName mangledName launchType "
    "cacheConfig registersPerThread gridX gridY gridZ blockX blockY blockZ staticSharedMemory "
    "dynamicSharedMemory localMemoryPerThread localMemoryTotal gridId sharedMemoryExecuted "
    "graphNodeId sharedMemoryLimitConfig",
    "CUPTI_ACTIVITY_KIND_MEMCPY": f"{_DEVICE} bytes copyKind deprecatedSrcId srcKind dstKind "
    "srcDeviceId srcContextId dstDeviceId dstContextId migrationCause graphNodeId virtualAddress",
    "CUPTI_ACTIVITY_KIND_MEMSET": f"{_DEVICE} value bytes graphNodeId memKind",
    "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION": f"{_DEVICE} syncType eventId",
    "ENUM_CUDA_MEMCPY_OPER": "id name label",
    "ENUM_CUDA_MEM_KIND": "id name label",
    "ENUM_CUPTI_SYNC_TYPE": "id name label",
}
"""Table → its columns."""
LABELS = {
    "ENUM_CUDA_MEMCPY_OPER": {1: "Host-to-Device", 8: "Device-to-Device"},
    "ENUM_CUDA_MEM_KIND": {0: "Pageable", 2: "Device"},
    "ENUM_CUPTI_SYNC_TYPE": {3: "Stream sync"},
}
PID, OTHER_PID = 4711, 4712


def global_tid(tid, pid=PID):
    """Return nsys' id of a thread: machine, process, thread."""
    return 1 << 48 | pid << 24 | tid


GLOBAL_PID = global_tid(0)
NVTX, API, OSRT = "NVTX_EVENTS", "CUPTI_ACTIVITY_KIND_RUNTIME", "OSRT_API"
KERNEL, MEMCPY = "CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_MEMCPY"
MEMSET, SYNC = "CUPTI_ACTIVITY_KIND_MEMSET", "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION"


class Database:
    """The SQLite of a report; a table appears with its first row, as in nsys."""

    def __init__(self, file, *, epoch_ns=EPOCH_NS, duration_ns=10**9):
        self.file = file
        self._rows = {}
        self._texts, self._ids = {}, count(1)
        if epoch_ns is not None:
            self.add("TARGET_INFO_SESSION_START_TIME", utcEpochNs=epoch_ns)
        self.add("ANALYSIS_DETAILS", duration=duration_ns)
        for table, labels in LABELS.items():
            for number, label in labels.items():
                self.add(table, id=number, name=label.upper(), label=label)

    def add(self, table, **values):
        assert set(values) <= set(SCHEMA[table].split())
        self._rows.setdefault(table, []).append(values)

    def text(self, value):
        if value not in self._texts:
            self._texts[value] = next(self._ids)
            self.add("StringIds", id=self._texts[value], value=value)
        return self._texts[value]

    def domain(self, number, name, pid=PID):
        """Create an NVTX domain, before the session began."""
        thread = global_tid(pid, pid)
        self.add(NVTX, start=-5, eventType=75, text=name, globalTid=thread, domainId=number)

    def range(self, start, end, name, *, tid=PID, kind=59, domain=1, pid=PID, **more):
        thread, text = global_tid(tid, pid), self.text(name)
        row = {"eventType": kind, "globalTid": thread, "textId": text, "domainId": domain}
        self.add(NVTX, start=start, end=end, **row, **more)

    def call(self, table, start, end, name, *, tid=PID, **more):
        row = {"globalTid": global_tid(tid), "nameId": self.text(name), "returnValue": 0}
        self.add(table, start=start, end=end, **row | more)

    def device(self, table, start, end, correlation, *, stream=7, device=0, **more):
        where = {"deviceId": device, "contextId": 1, "streamId": stream, "globalPid": GLOBAL_PID}
        self.add(table, start=start, end=end, correlationId=correlation, **where, **more)

    def write(self):
        with closing(sqlite3.connect(self.file)) as tables:
            for table, rows in self._rows.items():
                columns = SCHEMA[table].split()
                tables.execute(f"CREATE TABLE {table} ({str(columns)[1:-1]})")
                marks = ", ".join("?" * len(columns))
                values = [[row.get(name) for name in columns] for row in rows]
                tables.executemany(f"INSERT INTO {table} VALUES ({marks})", values)
            tables.commit()
        return self.file
