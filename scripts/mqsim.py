#!/usr/bin/env python3
"""Lodger beside MQSim: the same work in one run, requests per second of processor time.

MQSim (https://github.com/CMU-SAFARI/MQSim) is not part of Lodger. Build it, build Lodger with
`cargo build --profile dist -p lodger`, and say where they are:

    scripts/mqsim.py --mqsim ../MQSim/MQSim --lodger target/dist/lodger

Each case runs a short and a long workload on each side, in turns, and takes the fastest of each: what
the two differ by is the work of the requests between them, without start, file reading and filling up.
Both sides have queues 32 deep, uniform random or sequential addresses, and drives of equal capacity.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass, field
from pathlib import Path

# MQSim's own defaults, but for what a case changes: 8 channels of 4 chips of 2 dies of 2 planes.
DEVICE = {
    "Seed": 321,
    "Enabled_Preconditioning": "false",
    "Memory_Type": "FLASH",
    "HostInterface_Type": "NVME",
    "IO_Queue_Depth": 65535,
    "Queue_Fetch_Size": 512,
    "Caching_Mechanism": "ADVANCED",
    "Data_Cache_Sharing_Mode": "SHARED",
    "Data_Cache_Capacity": 16 << 20,
    "Data_Cache_DRAM_Row_Size": 8192,
    "Data_Cache_DRAM_Data_Rate": 800,
    "Data_Cache_DRAM_Data_Busrt_Size": 4,
    "Data_Cache_DRAM_tRCD": 13,
    "Data_Cache_DRAM_tCL": 13,
    "Data_Cache_DRAM_tRP": 13,
    "Address_Mapping": "PAGE_LEVEL",
    "Ideal_Mapping_Table": "false",
    "CMT_Capacity": 2 << 20,
    "CMT_Sharing_Mode": "SHARED",
    "Plane_Allocation_Scheme": "CWDP",
    "Transaction_Scheduling_Policy": "PRIORITY_OUT_OF_ORDER",
    "Overprovisioning_Ratio": 0.07,
    "GC_Exec_Threshold": 0.05,
    "GC_Block_Selection_Policy": "GREEDY",
    "Use_Copyback_for_GC": "false",
    "Preemptible_GC_Enabled": "false",
    "GC_Hard_Threshold": 0.005,
    "Dynamic_Wearleveling_Enabled": "true",
    "Static_Wearleveling_Enabled": "false",
    "Static_Wearleveling_Threshold": 100,
    "Preferred_suspend_erase_time_for_read": 700000,
    "Preferred_suspend_erase_time_for_write": 700000,
    "Preferred_suspend_write_time_for_read": 100000,
    "Flash_Channel_Count": 8,
    "Flash_Channel_Width": 1,
    "Channel_Transfer_Rate": 800,
    "Chip_No_Per_Channel": 4,
    "Flash_Comm_Protocol": "NVDDR2",
}
FLASH = {
    "Flash_Technology": "MLC",
    "CMD_Suspension_Support": "ERASE",
    "Page_Read_Latency_LSB": 29800,
    "Page_Read_Latency_CSB": 29800,
    "Page_Read_Latency_MSB": 41800,
    "Page_Program_Latency_LSB": 185000,
    "Page_Program_Latency_CSB": 185000,
    "Page_Program_Latency_MSB": 185000,
    "Block_Erase_Latency": 5000000,
    "Block_PE_Cycles_Limit": 1000000,
    "Suspend_Erase_Time": 50000,
    "Suspend_Program_Time": 20000,
    "Die_No_Per_Chip": 2,
    "Plane_No_Per_Die": 2,
    "Block_No_Per_Plane": 512,
    "Page_No_Per_Block": 256,
    # Lodger maps 4 KiB; with pages as large a write of 4 KiB reads nothing first.
    "Page_Capacity": 4096,
    "Page_Metadat_Capacity": 448,
}
FLOW = {
    "Priority_Class": "HIGH",
    "Device_Level_Data_Caching_Mode": "WRITE_CACHE",
    "Channel_IDs": "0,1,2,3,4,5,6,7",
    "Chip_IDs": "0,1,2,3",
    "Die_IDs": "0,1",
    "Plane_IDs": "0,1",
    "Initial_Occupancy_Percentage": 0,
    "Working_Set_Percentage": 100,
    "Synthetic_Generator_Type": "QUEUE_DEPTH",
    "Read_Percentage": 100,
    "Address_Distribution": "RANDOM_UNIFORM",
    "Percentage_of_Hot_Region": 0,
    "Generated_Aligned_Addresses": "true",
    "Address_Alignment_Unit": 8,
    "Request_Size_Distribution": "FIXED",
    "Average_Request_Size": 8,
    "Variance_Request_Size": 0,
    "Seed": 798,
    "Average_No_of_Reqs_in_Queue": 32,
    "Bandwidth": 0,
    "Stop_Time": 0,
}


@dataclass
class Case:
    """One regime: what both sides are told, and how many requests the two runs of each have."""

    title: str
    job: str
    drive: str
    sets: dict
    precondition: str
    lodger_requests: tuple
    mqsim_requests: tuple
    device: dict = field(default_factory=dict)
    flash: dict = field(default_factory=dict)
    flow: dict = field(default_factory=dict)


LARGE = {"capacity": "64GiB"}
SEQUENTIAL = {
    "Address_Distribution": "STREAMING",
    "Average_Request_Size": 256,
    "Address_Alignment_Unit": 256,
}
CASES = [
    Case(
        "4 KiB random reads, whole map at hand",
        "rw=randread\nbs=4k\nnorandommap",
        "970-pro",
        LARGE,
        "sequential",
        (200_000, 2_200_000),
        (20_000, 120_000),
        device={"Ideal_Mapping_Table": "true"},
    ),
    Case(
        "4 KiB random reads, map cache beyond its reach",
        "rw=randread\nbs=4k\nnorandommap",
        "rc100-480",
        LARGE | {"tier.hmb.preferred": "10MiB"},
        "sequential",
        (200_000, 1_200_000),
        (20_000, 120_000),
        device={"CMT_Capacity": 1 << 20},
    ),
    Case(
        "128 KiB sequential reads",
        "rw=read\nbs=128k",
        "970-pro",
        LARGE,
        "sequential",
        (50_000, 450_000),
        (2_000, 22_000),
        device={"Ideal_Mapping_Table": "true"},
        flow=SEQUENTIAL,
    ),
    Case(
        "128 KiB sequential writes",
        "rw=write\nbs=128k",
        "970-pro",
        LARGE,
        "none",
        (50_000, 250_000),
        (2_000, 22_000),
        device={"Ideal_Mapping_Table": "true"},
        flow=SEQUENTIAL | {"Read_Percentage": 0},
    ),
    # MQSim empties a block of each plane by itself, Lodger one of all dies and planes together, and MQSim
    # collects from the share of free blocks at which it begins, which therefore is spare that data never
    # gets. Lodger's over-provisioning is what makes it move as many pages for a write as MQSim does.
    Case(
        "4 KiB random writes, steady state",
        "rw=randwrite\nbs=4k\nnorandommap",
        "970-pro",
        {
            "capacity": "8GiB",
            "nand.pages_per_block": "64",
            "ftl.overprovisioning": "0.245",
        },
        "random",
        (500_000, 2_000_000),
        (4_000_000, 4_400_000),
        # Its ideal map fails while it collects ("Inconsistency in the global mapping table"): all of it cached.
        device={"CMT_Capacity": 64 << 20, "Overprovisioning_Ratio": 0.15},
        # With 64 to 80 blocks every run that collected ended with a fault, or with that message.
        flash={"Block_No_Per_Plane": 256, "Page_No_Per_Block": 64},
        flow={"Read_Percentage": 0},
    ),
]


def element(parent, name, values):
    """A node of MQSim's configuration."""
    node = ElementTree.SubElement(parent, name)
    for key, value in values.items():
        ElementTree.SubElement(node, key).text = str(value)
    return node


def run_timed(command, folder):
    """Runs a command; processor seconds it took and what it printed."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    # MQSim ends with a question to whoever sits at the keyboard.
    run = subprocess.run(
        command,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if run.returncode != 0:
        sys.stderr.buffer.write(run.stdout[-2000:] + run.stderr)
        sys.exit(f"mqsim.py: `{command[0]}` ended with status {run.returncode}")
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, run.stdout


def run_mqsim(mqsim, case, requests, folder):
    """Seconds, and pages written and moved."""
    execution = ElementTree.Element("Execution_Parameter_Set")
    host = {"PCIe_Lane_Bandwidth": 1.0, "PCIe_Lane_Count": 4, "SATA_Processing_Delay": 400000}
    element(execution, "Host_Parameter_Set", host)
    device = element(execution, "Device_Parameter_Set", DEVICE | case.device)
    element(device, "Flash_Parameter_Set", FLASH | case.flash)
    scenarios = ElementTree.Element("MQSim_IO_Scenarios")
    scenario = ElementTree.SubElement(scenarios, "IO_Scenario")
    flow = FLOW | case.flow | {"Total_Requests_To_Generate": requests}
    element(scenario, "IO_Flow_Parameter_Set_Synthetic", flow)
    for name, root in (("ssd.xml", execution), ("load.xml", scenarios)):
        # Its reader wants the root on a line of its own.
        text = ElementTree.tostring(root, encoding="unicode")
        head = '<?xml version="1.0" encoding="us-ascii"?>\n'
        (folder / name).write_text(head + text, encoding="ascii")
    seconds, _ = run_timed([mqsim, "-i", "ssd.xml", "-w", "load.xml"], folder)
    result = ElementTree.parse(folder / "load_scenario_1.xml").getroot()
    done = sum(int(node.text) for node in result.iter("Request_Count"))
    if done != requests:
        sys.exit(f"mqsim.py: MQSim completed {done} of {requests} requests of `{case.title}`")
    ftl = next(result.iter("SSDDevice.FTL")).attrib
    moved = 0.0
    if int(ftl["Total_GC_Executions"]) > 0:
        moved = int(ftl["Total_GC_Executions"]) * float(ftl["Average_Page_Movement_For_GC"])
    return seconds, requests, moved


def run_lodger(lodger, case, requests, folder):
    """Seconds, and pages written and moved."""
    (folder / "load.fio").write_text(
        f"[load]\n{case.job}\niodepth=32\nnumber_ios={requests}\n", encoding="ascii"
    )
    command = [lodger, "simulate", "load.fio", "--drive", case.drive, "--output-format", "json"]
    command += ["--precondition", case.precondition]
    for key, value in case.sets.items():
        command += ["--set", f"{key}={value}"]
    seconds, printed = run_timed(command, folder)
    result = json.loads(printed)["lodger"]
    if result["requests"] < requests:
        sys.exit(f"mqsim.py: Lodger did {result['requests']} of {requests} of `{case.title}`")
    waf = result["waf"] or 1.0
    return seconds, requests, (waf - 1.0) * requests


def measure(run, counts, rounds, folder):
    """Requests per second between the short and the long run, and pages programmed for one written."""
    best = [None, None]
    for _ in range(rounds):
        for at, count in enumerate(counts):
            found = run(count, folder)
            if best[at] is None or found < best[at]:
                best[at] = found
    (short_s, short, short_moved), (long_s, long, long_moved) = best
    rate = (long - short) / (long_s - short_s)
    return rate, 1.0 + (long_moved - short_moved) / (long - short)


def main():
    """Prints the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--mqsim", required=True, help="MQSim's program, built with its Makefile")
    parser.add_argument("--lodger", default="target/dist/lodger", help="Lodger's (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=2, help="runs of each (default: %(default)s)")
    parser.add_argument("--case", help="only cases whose title contains this")
    given = parser.parse_args()
    mqsim, lodger = os.path.abspath(given.mqsim), os.path.abspath(given.lodger)
    for program in (mqsim, lodger):
        if not os.access(program, os.X_OK):
            sys.exit(f"mqsim.py: there is no program `{program}`")
    print(f"{'requests per second of processor time':<48}{'MQSim':>9}{'Lodger':>9}{'times':>7}"
          f"{'WAF':>7}{'WAF':>7}")
    for case in CASES:
        if given.case and given.case not in case.title:
            continue
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            theirs, their_waf = measure(
                lambda count, at, case=case: run_mqsim(mqsim, case, count, at),
                case.mqsim_requests, given.rounds, folder)
            ours, our_waf = measure(
                lambda count, at, case=case: run_lodger(lodger, case, count, at),
                case.lodger_requests, given.rounds, folder)
        print(f"{case.title:<48}{theirs / 1e3:>7.0f} k{ours / 1e3:>7.0f} k{ours / theirs:>7.1f}"
              f"{their_waf:>7.2f}{our_waf:>7.2f}", flush=True)


if __name__ == "__main__":
    main()
