"""The seccomp filters: what the sandbox may ask the kernel, ever narrower towards the submitted code.

Three filters lie on each other, and the strictest answer counts. `outer` is laid on by bubblewrap before
anything of ours starts and refuses what nothing inside needs. `warm` is put on by the warm process after its
imports, `run` by its child before it looks at the job; these two name what is allowed and refuse the rest.
"""

from __future__ import annotations

import errno
import os
import tempfile
from functools import cache
from importlib import import_module
from typing import Any

from understudy.core.extras import install_hint
from understudy.errors import MissingError

_NEW_NAMESPACES = 0x7E020000  # every CLONE_NEW* that clone knows
_APART = 0x20020000  # those of processes and mounts, which the warm process gives to every run
_TOLD, _CHILD_SIGNAL = 0x01001000, 17
_SCRATCH_FLAGS = 14  # nosuid, nodev, noexec
_REFUSED = """
socket socketpair connect bind listen accept accept4 socketcall
unshare setns umount umount2 pivot_root chroot move_mount open_tree open_tree_attr fsopen fsconfig
fsmount fspick mount_setattr statmount listmount
ptrace process_vm_readv process_vm_writev process_madvise process_mrelease pidfd_getfd kcmp
io_uring_setup io_uring_enter io_uring_register bpf perf_event_open userfaultfd memfd_secret
keyctl add_key request_key
init_module finit_module delete_module kexec_load kexec_file_load reboot swapon swapoff acct quotactl
quotactl_fd syslog settimeofday clock_settime clock_adjtime adjtimex sethostname setdomainname
personality name_to_handle_at open_by_handle_at lookup_dcookie nfsservctl vhangup iopl ioperm modify_ldt
move_pages migrate_pages mbind set_mempolicy set_mempolicy_home_node get_mempolicy
shmget shmat shmctl shmdt semget semop semtimedop semctl msgget msgsnd msgrcv msgctl
mq_open mq_unlink mq_timedsend mq_timedreceive mq_notify mq_getsetattr
fanotify_init fanotify_mark uselib ustat sysfs _sysctl vfork mknod mknodat
futex_waitv futex_wake futex_wait futex_requeue
"""
_RUN = """
read write readv writev pread64 pwrite64 preadv pwritev lseek close close_range
open openat stat lstat fstat newfstatat fstatat64 statx statfs fstatfs access faccessat faccessat2
readlink readlinkat getdents getdents64 getcwd chdir fchdir
mkdir mkdirat rmdir unlink unlinkat rename renameat renameat2 link linkat symlink symlinkat
truncate ftruncate fallocate fsync fdatasync chmod fchmod fchmodat umask
copy_file_range sendfile dup dup2 dup3
poll ppoll select pselect6 epoll_create1 epoll_ctl epoll_wait epoll_pwait eventfd2
mmap munmap mremap mprotect msync brk
rt_sigaction rt_sigprocmask rt_sigreturn rt_sigpending rt_sigtimedwait rt_sigsuspend sigaltstack pause
alarm setitimer getitimer nanosleep clock_nanosleep clock_gettime clock_getres gettimeofday time times
rseq
sched_yield sched_getaffinity sched_getparam sched_getscheduler getcpu
getpid gettid getppid getuid geteuid getgid getegid getgroups getresuid getresgid getpgrp getpgid getsid
getrandom getrlimit uname arch_prctl exit exit_group restart_syscall getpriority
"""
_WARM = """
waitid recvmsg sendmsg recvfrom sendto prctl seccomp setrlimit prlimit64 fcntl capset
"""
# Duplicates and what is set now. F_SETOWN, F_SETSIG and their like would let a pipe send signals to another
# process; locks would let runs talk to each other; F_SETFL could cut the result into packets.
_DESCRIPTOR_COMMANDS = (0, 1, 2, 3, 1030)
# Locks that sleep, within one process only: a shared one lies on a page of a file, any library's, and whoever
# sleeps on it is woken from another sandbox that has mapped the same page.
_FUTEX_PRIVATE = 128
# What allocators say about their own memory (DONTNEED, FREE, HUGEPAGE and NOHUGEPAGE, DONTDUMP and DODUMP). The
# other hints are for pages of files, which runs share, or have the kernel look for equal pages of others.
_MEMORY_HINTS = (4, 8, 14, 15, 16, 17)
# Not in the lists because another run would see it: a new pipe counts up the machine's numbers of inodes;
# mincore, preadv2 and getrusage (by its count of pages read from a disk) reveal which files an earlier run has
# read, sysinfo how much memory is left.


def library() -> Any:
    """The binding of libseccomp."""
    try:
        return import_module("pyseccomp")
    except (ImportError, RuntimeError) as error:
        raise MissingError(
            "the sandbox needs libseccomp and its Python binding, and one of them is missing.",
            hint="install Debian's libseccomp2 (or your system's libseccomp); " + install_hint("sandbox"),
            code="no-seccomp",
        ) from error


def version() -> str:
    """The versions of libseccomp and of its binding, which make the filters."""
    import ctypes

    seccomp = library()
    version = seccomp._libseccomp.seccomp_version
    version.restype = ctypes.POINTER(ctypes.c_uint * 3)
    return f"libseccomp {'.'.join(map(str, version().contents))}, pyseccomp {seccomp.__version__}"


def number(name: str) -> int:
    """The number of a system call on this machine; negative if it has none."""
    try:
        return int(library().resolve_syscall(library().system_arch(), name))
    except ValueError:
        return -1


@cache
def outer() -> bytes:
    """For everything inside, from the first instruction."""
    seccomp = library()
    rules = seccomp.SyscallFilter(defaction=seccomp.ALLOW)
    for name in _REFUSED.split():
        add_rule(rules, seccomp.ERRNO(errno.EPERM), name)
    for bit in range(64):
        if (_NEW_NAMESPACES & ~_APART) >> bit & 1:
            flag = seccomp.Arg(0, seccomp.MASKED_EQ, 1 << bit, 1 << bit)
            add_rule(rules, seccomp.ERRNO(errno.EPERM), "clone", flag)
    # Its flags lie in memory, where a filter cannot look; libraries fall back to clone.
    add_rule(rules, seccomp.ERRNO(errno.ENOSYS), "clone3")
    return _compiled(rules)


@cache
def warm() -> bytes:
    """For the warm process once it has imported everything: it can fork a run, and start no program."""
    seccomp = library()
    rules = allowing(f"{_RUN} {_WARM}")
    add_rule(rules, seccomp.ALLOW, "clone", seccomp.Arg(0, seccomp.EQ, _APART | _TOLD | _CHILD_SIGNAL))
    add_rule(rules, seccomp.ALLOW, "mount", seccomp.Arg(3, seccomp.EQ, _SCRATCH_FLAGS))
    return _compiled(rules)


@cache
def run() -> bytes:
    """For submitted code: files, memory and clocks; no process, no thread, no signal to others."""
    seccomp = library()
    rules = allowing(_RUN)
    for command in _DESCRIPTOR_COMMANDS:
        add_rule(rules, seccomp.ALLOW, "fcntl", seccomp.Arg(1, seccomp.EQ, command))
    # Reading its own limits; with another process's number it could change the warm process's.
    add_rule(rules, seccomp.ALLOW, "prlimit64", seccomp.Arg(0, seccomp.EQ, 0), seccomp.Arg(2, seccomp.EQ, 0))
    return _compiled(rules)


def allowing(names: str) -> Any:
    """A filter that refuses every call but these."""
    seccomp = library()
    rules = seccomp.SyscallFilter(defaction=seccomp.ERRNO(errno.EPERM))
    for name in names.split():
        add_rule(rules, seccomp.ALLOW, name)
    add_rule(rules, seccomp.ALLOW, "futex", seccomp.Arg(1, seccomp.MASKED_EQ, _FUTEX_PRIVATE, _FUTEX_PRIVATE))
    for hint in _MEMORY_HINTS:
        add_rule(rules, seccomp.ALLOW, "madvise", seccomp.Arg(2, seccomp.EQ, hint))
    add_rule(rules, seccomp.ERRNO(errno.ENOSYS), "clone3")
    add_rule(rules, seccomp.ERRNO(errno.ENOTTY), "ioctl")
    # Done without being done: readers of files give up when a hint is refused.
    add_rule(rules, seccomp.ERRNO(0), "fadvise64")
    return rules


def add_rule(rules: Any, action: int, name: str, *conditions: Any) -> None:
    """Add a rule to a filter."""
    # A call that this architecture or this version of the library does not know: the allowing filters
    # refuse it anyway, the outer one is only the first of three.
    if number(name) >= 0:
        rules.add_rule(action, name, *conditions)


def _compiled(rules: Any) -> bytes:
    with tempfile.TemporaryFile() as file:
        rules.export_bpf(file)
        file.seek(0, os.SEEK_SET)
        return file.read()
