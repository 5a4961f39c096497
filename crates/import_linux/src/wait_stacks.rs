//! Waits that stacks show: the functions of the kernel with which threads of Linux left their CPUs. Most names were seen in
//! recordings of programs that wait for each kind of object (Linux 6.18). The others are names of the same functions in
//! other kernels, or of other file systems.

use std::collections::hash_map::Entry;

use rustc_hash::FxHashMap;
use symbols::KernelSymbols;
use tables::{StackWait, Stacks, WaitKind};

/// Part of a function in a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    /// Switches to another thread, for all kinds of waits.
    Switches,
    /// Waits for this.
    Waits(WaitKind),
    /// Handles a page fault.
    Faults,
    /// Frees memory.
    Reclaims,
    Other,
}

/// Returns the waits that stacks show, by stack id. `symbols` has the functions of the kernel.
pub(crate) fn waits_of_stacks(stacks: &Stacks, symbols: &KernelSymbols) -> Vec<StackWait> {
    let mut roles: FxHashMap<u64, Role> = FxHashMap::default();
    let mut role = |address: u64| match roles.entry(address) {
        Entry::Occupied(role) => *role.get(),
        Entry::Vacant(entry) => {
            let function = symbols.find(address);
            *entry.insert(function.map_or(Role::Other, |(name, _)| role_of(name)))
        }
    };
    let stacks = (0..stacks.stack_id.len()).map(|row| stacks.addresses.get(row));
    stacks
        .map(|addresses| wait_of_roles(addresses.iter().map(|address| role(*address))))
        .collect()
}

/// Returns the wait that a stack shows. The roles of its functions begin with the innermost function.
fn wait_of_roles(mut roles: impl Iterator<Item = Role>) -> StackWait {
    if roles.next() != Some(Role::Switches) {
        return StackWait::Silent;
    }
    // An outer function says nothing if an unknown function waits for something inside of it.
    let Some(Role::Waits(kind)) = roles.find(|role| *role != Role::Switches) else {
        return StackWait::Other;
    };
    if kind != WaitKind::Disk {
        return StackWait::For(kind);
    }
    match roles.find(|role| matches!(role, Role::Faults | Role::Reclaims)) {
        None => StackWait::For(WaitKind::Disk),
        Some(Role::Faults) => StackWait::For(WaitKind::Page),
        Some(_) => StackWait::Other,
    }
}

/// Functions by role. A name with `*` stands for all functions whose names begin with the part before it.
const ROLES: [(Role, &[&str]); 11] = [
    (
        Role::Switches,
        &[
            "__schedule",
            "schedule*",
            "freezable_schedule*",
            "wait_for_completion*",
            "__wait_for_common",
            "__wait_on_bit*",
            "out_of_line_wait_on_bit*",
            "bit_wait",
            "wait_woken",
            "do_wait_intr",
            "do_wait_intr_irq",
            "poll_schedule_timeout",
            // Locks with priority inheritance are also a part of futexes.
            "rt_mutex_*",
            "__rt_mutex_*",
            // Functions that record the switch.
            "__traceiter_*",
            "trace_event_raw_event_*",
        ],
    ),
    (
        Role::Waits(WaitKind::Sleep),
        &[
            "do_nanosleep",
            "hrtimer_nanosleep",
            "msleep",
            "msleep_interruptible",
            "usleep_range_state",
            "timerfd_read",
            "timerfd_read_iter",
        ],
    ),
    (
        Role::Waits(WaitKind::Lock),
        &[
            "mutex_lock*",
            "__mutex_lock*",
            "rwsem_down_*",
            "rwbase_*",
            "__down*",
            "___down*",
            "percpu_rwsem_wait",
            "percpu_down_write",
            "__percpu_down_read",
            "__lock_sock",
            "fcntl_setlk",
            "locks_lock_inode_wait",
            "__do_sys_flock",
        ],
    ),
    (
        Role::Waits(WaitKind::Futex),
        &[
            "futex_wait*",
            "__futex_wait*",
            "futex_do_wait",
            "futex_lock_pi",
        ],
    ),
    (
        Role::Waits(WaitKind::Disk),
        &[
            "io_schedule*",
            "submit_bio_wait",
            "jbd2_log_wait_commit",
            "xfs_buf_iowait",
            "wb_wait_for_completion",
        ],
    ),
    (
        Role::Waits(WaitKind::Message),
        &[
            "anon_pipe_read",
            "anon_pipe_write",
            "pipe_read",
            "pipe_write",
            "pipe_wait",
            "pipe_wait_readable",
            "pipe_wait_writable",
            "wait_for_partner",
            "unix_stream_read_generic",
            "unix_stream_data_wait",
            "unix_wait_for_peer",
            "__skb_wait_for_more_packets",
            "sock_alloc_send_pskb",
            "sk_wait_data",
            "sk_stream_wait_memory",
            "sk_stream_wait_connect",
            "inet_csk_accept",
            "inet_csk_wait_for_connect",
            "inet_wait_for_connect",
            "__inet_stream_connect",
            "do_poll",
            "do_sys_poll",
            "do_select",
            "ep_poll",
            "do_epoll_wait",
            "eventfd_read",
            "n_tty_read",
            "do_msgrcv",
            "do_msgsnd",
            "wq_sleep",
        ],
    ),
    (
        Role::Waits(WaitKind::Child),
        &["do_wait", "kernel_clone", "wait_for_vfork_done"],
    ),
    (
        Role::Waits(WaitKind::Stopped),
        &["do_signal_stop", "ptrace_stop"],
    ),
    (
        Role::Waits(WaitKind::Frozen),
        // The compiler makes `do_freezer_trap` a part of `get_signal`.
        &["do_freezer_trap", "get_signal", "__refrigerator"],
    ),
    (Role::Faults, &["handle_mm_fault"]),
    (
        Role::Reclaims,
        &["try_to_free_pages", "try_to_free_mem_cgroup_pages"],
    ),
];

/// Returns the role of a function of the kernel.
fn role_of(name: &str) -> Role {
    // The compiler appends a suffix such as `.constprop.0` to copies of functions.
    let name = name.split('.').next().unwrap_or(name);
    let is_it = |known: &&str| match known.strip_suffix('*') {
        Some(start) => name.starts_with(start),
        None => name == *known,
    };
    let of_name = ROLES.iter().find(|(_, names)| names.iter().any(is_it));
    of_name.map_or(Role::Other, |(role, _)| *role)
}

#[cfg(test)]
mod tests {
    use StackWait::{For, Other, Silent};
    use tables::import::{StackEvents, StackIndex};

    use super::*;

    /// Returns the wait that a stack shows. The innermost function comes first.
    fn wait_at(functions: &str) -> StackWait {
        let lines: Vec<String> = (1..)
            .zip(functions.split(" < "))
            .map(|(number, name)| format!("ffffffff8100{number:02x}00 t {name}\n"))
            .collect();
        let addresses = (1..=lines.len() as u64).map(|it| 0xFFFF_FFFF_8100_0010 + (it << 8));
        let mut events = StackEvents::default();
        events.push_chain((0, None), 1, addresses);
        let (_, stacks) = StackIndex::build(vec![events]);
        let symbols = KernelSymbols::parse(lines.concat().as_bytes());
        waits_of_stacks(&stacks, &symbols)[0]
    }

    #[test]
    fn the_innermost_function_that_is_not_of_the_scheduler_tells_the_kind() {
        for (functions, expected) in [
            (
                "__schedule < schedule < do_nanosleep < hrtimer_nanosleep",
                For(WaitKind::Sleep),
            ),
            (
                "__schedule < schedule < anon_pipe_read < vfs_read",
                For(WaitKind::Message),
            ),
            (
                "__schedule < schedule < schedule_timeout < wait_woken < sk_wait_data < tcp_recvmsg_locked",
                For(WaitKind::Message),
            ),
            (
                "__schedule < schedule < wait_for_completion_state < kernel_clone < __x64_sys_vfork",
                For(WaitKind::Child),
            ),
            (
                "__schedule < rt_mutex_schedule < rt_mutex_slowlock_block.constprop.0 < rt_mutex_wait_proxy_lock < \
                 futex_lock_pi < do_futex",
                For(WaitKind::Futex),
            ),
            (
                "__schedule < schedule_preempt_disabled < rwsem_down_read_slowpath < down_read < exc_page_fault",
                For(WaitKind::Lock),
            ),
            (
                "__schedule < schedule < get_signal < arch_do_signal_or_restart",
                For(WaitKind::Frozen),
            ),
            // A function that is not known waits inside of the read.
            (
                "__schedule < schedule < unknown < anon_pipe_read < vfs_read",
                Other,
            ),
            ("__schedule < schedule < worker_thread < kthread", Other),
            ("__schedule < schedule", Other),
            // The thread ran: the chain belongs to another event.
            ("anon_pipe_read < vfs_read", Silent),
        ] {
            assert_eq!(wait_at(functions), expected, "{functions}");
        }
    }

    #[test]
    fn reads_in_a_page_fault_are_for_a_page() {
        let disk = "__schedule < schedule < io_schedule < folio_wait_bit_common";
        for (outer, expected) in [
            (
                "filemap_get_pages < filemap_read < vfs_read",
                For(WaitKind::Disk),
            ),
            (
                "filemap_fault < __do_fault < handle_mm_fault < exc_page_fault",
                For(WaitKind::Page),
            ),
            // The thread frees memory, because a page is missing.
            (
                "shrink_folio_list < try_to_free_pages < handle_mm_fault < exc_page_fault",
                Other,
            ),
        ] {
            assert_eq!(wait_at(&format!("{disk} < {outer}")), expected, "{outer}");
        }
    }

    #[test]
    fn without_names_stacks_show_nothing() {
        let mut events = StackEvents::default();
        events.push_chain((0, None), 1, [0xFFFF_FFFF_8100_0110, 0x40_0000].into_iter());
        let (_, stacks) = StackIndex::build(vec![events]);
        assert_eq!(
            waits_of_stacks(&stacks, &KernelSymbols::default()),
            [Silent]
        );
    }
}
