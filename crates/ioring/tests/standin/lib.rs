//! Stand-in for the ring functions of KernelBase and ntdll, so that the crate can be tested on systems
//! without them. Unsafe code is allowed because a DLL receives raw pointers from its caller. The stand-in
//! assumes that these pointers meet the requirements of `ioringapi.h`.
//!
//! The stand-in executes operations during the submission and completes them in reverse order,
//! because callers may not rely on the order. Tests select special behaviour by certain offsets and
//! queue sizes:
//!
//! - A read at offset `HELD` or later stays in flight until it is cancelled.
//! - An NT ring with `BAD_MASK`, `BAD_TOKEN` or `BAD_READ` entries returns a wrong mask,
//!   completes with a wrong token, or reads zeros.

#![cfg(all(windows, target_pointer_width = "64"))]
#![allow(unsafe_code, non_snake_case, missing_docs)]
#![allow(clippy::missing_safety_doc, clippy::too_many_arguments)]

use std::collections::VecDeque;
use std::ffi::c_void;
use std::ptr;

use windows_sys::Win32::Foundation::{
    ERROR_HANDLE_EOF, ERROR_IO_PENDING, ERROR_NOT_FOUND, ERROR_OPERATION_ABORTED, GetLastError,
    HANDLE,
};
use windows_sys::Win32::Storage::FileSystem::{FlushFileBuffers, ReadFile, WriteFile};
use windows_sys::Win32::System::IO::{GetOverlappedResult, OVERLAPPED};

const HELD: u64 = 1 << 62;
const BAD_MASK: u32 = 3;
const BAD_TOKEN: u32 = 5;
const BAD_READ: u32 = 7;

const VERSION: u32 = 400;
const FEATURES: u32 = 2;
const MAX_SUBMISSIONS: u32 = 0x1_0000;
const MAX_COMPLETIONS: u32 = 0x2_0000;

const FAILED_VERSION: i32 = 0x8046_0003_u32.cast_signed();
const FAILED_TOO_BIG: i32 = 0x8046_0004_u32.cast_signed();
const FAILED_FULL: i32 = 0x8046_0002_u32.cast_signed();
const STATUS_NOT_SUPPORTED: i32 = 0xC000_00BB_u32.cast_signed();
const EMPTY: i32 = 1;

fn hresult(error: u32) -> i32 {
    (0x8007_0000 | error).cast_signed()
}

// ----- operations -----

#[derive(Clone, Copy)]
enum File {
    Raw(HANDLE),
    Registered(u32),
}

#[derive(Clone, Copy)]
enum Memory {
    Raw(*mut u8),
    Registered(u32, u32),
}

enum What {
    Nop,
    Read(File, Memory, u32, u64),
    Write(File, Memory, u32, u64),
    Flush(File),
    Cancel(u64),
    Files(Vec<HANDLE>),
    Buffers(Vec<(*mut u8, u32)>),
    Unknown,
}

struct Job {
    token: u64,
    what: What,
}

#[derive(Clone, Copy)]
struct Done {
    token: u64,
    code: i32,
    information: u64,
}

#[derive(Default)]
struct Machine {
    files: Vec<HANDLE>,
    buffers: Vec<(*mut u8, u32)>,
    held: Vec<u64>,
}

impl Machine {
    /// Executes jobs and returns their results in reverse order.
    unsafe fn run(&mut self, jobs: Vec<Job>) -> Vec<Done> {
        let mut done = Vec::new();
        for job in jobs {
            let token = job.token;
            let result = match job.what {
                What::Nop => Ok(0),
                What::Read(_, _, _, offset) if offset >= HELD => {
                    self.held.push(token);
                    continue;
                }
                What::Read(file, memory, length, offset) => unsafe {
                    self.transfer(file, memory, length, offset, false)
                },
                What::Write(file, memory, length, offset) => unsafe {
                    self.transfer(file, memory, length, offset, true)
                },
                What::Flush(file) => match self.file(file) {
                    Some(handle) if unsafe { FlushFileBuffers(handle) } != 0 => Ok(0),
                    _ => Err(hresult(unsafe { GetLastError() })),
                },
                What::Cancel(other) => match self.held.iter().position(|&held| held == other) {
                    Some(at) => {
                        self.held.remove(at);
                        done.push(Done {
                            token: other,
                            code: hresult(ERROR_OPERATION_ABORTED),
                            information: 0,
                        });
                        Ok(0)
                    }
                    None => Err(hresult(ERROR_NOT_FOUND)),
                },
                What::Files(files) => {
                    self.files = files;
                    Ok(0)
                }
                What::Buffers(buffers) => {
                    self.buffers = buffers;
                    Ok(0)
                }
                What::Unknown => Err(STATUS_NOT_SUPPORTED),
            };
            done.push(Done {
                token,
                code: result.err().unwrap_or(0),
                information: result.unwrap_or(0),
            });
        }
        done.reverse();
        done
    }

    fn file(&self, file: File) -> Option<HANDLE> {
        match file {
            File::Raw(handle) => Some(handle),
            File::Registered(index) => self.files.get(index as usize).copied(),
        }
    }

    unsafe fn transfer(
        &self,
        file: File,
        memory: Memory,
        length: u32,
        offset: u64,
        is_write: bool,
    ) -> Result<u64, i32> {
        const INVALID_PARAMETER: i32 = 0x8007_0057_u32.cast_signed();
        let file = self.file(file).ok_or(INVALID_PARAMETER)?;
        let address = match memory {
            Memory::Raw(address) => address,
            Memory::Registered(index, offset) => {
                let &(address, size) = self.buffers.get(index as usize).ok_or(INVALID_PARAMETER)?;
                if u64::from(offset) + u64::from(length) > u64::from(size) {
                    return Err(INVALID_PARAMETER);
                }
                unsafe { address.add(offset as usize) }
            }
        };
        let mut overlapped: OVERLAPPED = unsafe { std::mem::zeroed() };
        overlapped.Anonymous.Anonymous.Offset = offset as u32;
        overlapped.Anonymous.Anonymous.OffsetHigh = (offset >> 32) as u32;
        let mut bytes = 0;
        let worked = unsafe {
            let state = &raw mut overlapped;
            let begun = if is_write {
                WriteFile(file, address, length, &raw mut bytes, state)
            } else {
                ReadFile(file, address, length, &raw mut bytes, state)
            };
            begun != 0
                || GetLastError() == ERROR_IO_PENDING
                    && GetOverlappedResult(file, state, &raw mut bytes, 1) != 0
        };
        match (worked, unsafe { GetLastError() }) {
            (true, _) => Ok(u64::from(bytes)),
            // A synchronous read past the end of a file fails with this error. A read through a ring fails
            // with the same error.
            (false, ERROR_HANDLE_EOF) => Err(hresult(ERROR_HANDLE_EOF)),
            (false, error) => Err(hresult(error)),
        }
    }
}

// ----- KernelBase -----

#[repr(C)]
pub struct Capabilities {
    max_version: u32,
    max_submission: u32,
    max_completion: u32,
    features: u32,
}

#[repr(C)]
pub struct CreateFlags {
    required: u32,
    advisory: u32,
}

#[repr(C)]
pub struct Info {
    version: u32,
    flags: CreateFlags,
    submission: u32,
    completion: u32,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct HandleRef {
    kind: u32,
    value: usize,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct BufferRef {
    kind: u32,
    value: usize,
}

#[repr(C)]
pub struct BufferInfo {
    address: *mut u8,
    length: u32,
}

#[repr(C)]
pub struct Cqe {
    user_data: usize,
    code: i32,
    information: usize,
}

pub struct Ring {
    version: u32,
    submission: u32,
    completion: u32,
    jobs: Vec<Job>,
    done: VecDeque<Done>,
    machine: Machine,
}

impl HandleRef {
    fn file(self) -> File {
        match self.kind {
            0 => File::Raw(self.value as HANDLE),
            _ => File::Registered(self.value as u32),
        }
    }
}

impl BufferRef {
    fn memory(self) -> Memory {
        match self.kind {
            0 => Memory::Raw(self.value as *mut u8),
            _ => Memory::Registered(self.value as u32, (self.value >> 32) as u32),
        }
    }
}

impl Ring {
    fn queue(&mut self, token: usize, what: What) -> i32 {
        if self.jobs.len() >= self.submission as usize {
            return FAILED_FULL;
        }
        let token = token as u64;
        self.jobs.push(Job { token, what });
        0
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "system" fn QueryIoRingCapabilities(out: *mut Capabilities) -> i32 {
    unsafe {
        out.write(Capabilities {
            max_version: VERSION,
            max_submission: MAX_SUBMISSIONS,
            max_completion: MAX_COMPLETIONS,
            features: FEATURES,
        });
    }
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "system" fn CreateIoRing(
    version: u32,
    _: CreateFlags,
    submission: u32,
    completion: u32,
    out: *mut *mut Ring,
) -> i32 {
    if ![1, 2, 300, 400].contains(&version) {
        return FAILED_VERSION;
    }
    if submission > MAX_SUBMISSIONS {
        return FAILED_TOO_BIG;
    }
    let ring = Ring {
        version,
        submission: submission.next_power_of_two(),
        completion: completion.next_power_of_two(),
        jobs: Vec::new(),
        done: VecDeque::new(),
        machine: Machine::default(),
    };
    unsafe { out.write(Box::into_raw(Box::new(ring))) };
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "system" fn GetIoRingInfo(ring: *mut Ring, out: *mut Info) -> i32 {
    unsafe {
        out.write(Info {
            version: (*ring).version,
            flags: CreateFlags {
                required: 0,
                advisory: 0,
            },
            submission: (*ring).submission,
            completion: (*ring).completion,
        });
    }
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "system" fn IsIoRingOpSupported(ring: *mut Ring, operation: u32) -> i32 {
    let last = match unsafe { (*ring).version } {
        ..300 => 4,
        300..400 => 6,
        400.. => 8,
    };
    i32::from(operation <= last)
}

#[unsafe(no_mangle)]
pub unsafe extern "system" fn CloseIoRing(ring: *mut Ring) -> i32 {
    drop(unsafe { Box::from_raw(ring) });
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "system" fn SubmitIoRing(
    ring: *mut Ring,
    _wait: u32,
    _milliseconds: u32,
    submitted: *mut u32,
) -> i32 {
    let ring = unsafe { &mut *ring };
    let jobs = std::mem::take(&mut ring.jobs);
    unsafe { submitted.write(jobs.len() as u32) };
    ring.done.extend(unsafe { ring.machine.run(jobs) });
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "system" fn PopIoRingCompletion(ring: *mut Ring, out: *mut Cqe) -> i32 {
    let Some(done) = (unsafe { (*ring).done.pop_front() }) else {
        return EMPTY;
    };
    unsafe {
        out.write(Cqe {
            user_data: done.token as usize,
            code: done.code,
            information: done.information as usize,
        });
    }
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "system" fn BuildIoRingReadFile(
    ring: *mut Ring,
    file: HandleRef,
    buffer: BufferRef,
    length: u32,
    offset: u64,
    token: usize,
    _: u32,
) -> i32 {
    let what = What::Read(file.file(), buffer.memory(), length, offset);
    unsafe { (*ring).queue(token, what) }
}

#[unsafe(no_mangle)]
pub unsafe extern "system" fn BuildIoRingWriteFile(
    ring: *mut Ring,
    file: HandleRef,
    buffer: BufferRef,
    length: u32,
    offset: u64,
    _write_flags: u32,
    token: usize,
    _: u32,
) -> i32 {
    let what = What::Write(file.file(), buffer.memory(), length, offset);
    unsafe { (*ring).queue(token, what) }
}

#[unsafe(no_mangle)]
pub unsafe extern "system" fn BuildIoRingFlushFile(
    ring: *mut Ring,
    file: HandleRef,
    _mode: u32,
    token: usize,
    _: u32,
) -> i32 {
    unsafe { (*ring).queue(token, What::Flush(file.file())) }
}

#[unsafe(no_mangle)]
pub unsafe extern "system" fn BuildIoRingCancelRequest(
    ring: *mut Ring,
    _file: HandleRef,
    other: usize,
    token: usize,
) -> i32 {
    unsafe { (*ring).queue(token, What::Cancel(other as u64)) }
}

#[unsafe(no_mangle)]
pub unsafe extern "system" fn BuildIoRingRegisterFileHandles(
    ring: *mut Ring,
    count: u32,
    handles: *const HANDLE,
    token: usize,
) -> i32 {
    unsafe { (*ring).queue(token, What::Files(files(handles, count))) }
}

#[unsafe(no_mangle)]
pub unsafe extern "system" fn BuildIoRingRegisterBuffers(
    ring: *mut Ring,
    count: u32,
    infos: *const BufferInfo,
    token: usize,
) -> i32 {
    unsafe { (*ring).queue(token, What::Buffers(buffers(infos, count))) }
}

unsafe fn files(handles: *const HANDLE, count: u32) -> Vec<HANDLE> {
    (0..count as usize)
        .map(|at| unsafe { handles.add(at).read() })
        .collect()
}

unsafe fn buffers(infos: *const BufferInfo, count: u32) -> Vec<(*mut u8, u32)> {
    (0..count as usize)
        .map(|at| unsafe {
            let info = infos.add(at).read();
            (info.address, info.length)
        })
        .collect()
}

// ----- ntdll -----

#[repr(C)]
pub struct NtCapabilities {
    version: u32,
    max_operation: u32,
    features: u32,
    submission: u32,
    completion: u32,
}

#[repr(C)]
pub struct NtParameters {
    version: u32,
    submission: u32,
    completion: u32,
    flags: CreateFlags,
}

#[repr(C)]
pub struct NtInfo {
    version: u32,
    flags: CreateFlags,
    submission_size: u32,
    submission_mask: u32,
    completion_size: u32,
    completion_mask: u32,
    submission: *mut c_void,
    completion: *mut c_void,
}

/// Entry of a read or write, with the fields of the kernel's symbols. Other operations use the same
/// bytes for other fields.
#[repr(C)]
#[derive(Clone, Copy)]
struct NtSqe {
    operation: u32,
    flags: u32,
    user_data: u64,
    common_flags: u32,
    own_flags: u32,
    file: u64,
    buffer: u64,
    offset: u64,
    length: u32,
    key: u32,
    padding: u64,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct NtRegistration {
    operation: u32,
    flags: u32,
    user_data: u64,
    common_flags: u32,
    required: u32,
    advisory: u32,
    count: u32,
    rows: *const c_void,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct NtCqe {
    user_data: u64,
    code: i32,
    information: u64,
}

struct NtRing {
    asked: u32,
    submission_size: u32,
    completion_size: u32,
    /// Memory of the submission queue: head, tail, flags and an unused field (32 bits each), then
    /// the entries.
    submission: Vec<u64>,
    /// Memory of the completion queue: head and tail (32 bits each), then the entries.
    completion: Vec<u64>,
    machine: Machine,
}

impl NtRing {
    unsafe fn take_jobs(&mut self) -> Vec<Job> {
        let start = self.submission.as_mut_ptr().cast::<u32>();
        let (head, tail) = unsafe { (start.read_volatile(), start.add(1).read_volatile()) };
        let entries = unsafe { start.add(4).cast::<NtSqe>() };
        let mut jobs = Vec::new();
        let mut at = head;
        while at != tail {
            let place = (at & (self.submission_size - 1)) as usize;
            jobs.push(unsafe { job(entries.add(place)) });
            at = at.wrapping_add(1);
        }
        unsafe { start.write_volatile(tail) };
        jobs
    }

    unsafe fn complete(&mut self, done: Done) {
        let start = self.completion.as_mut_ptr().cast::<u32>();
        let tail = unsafe { start.add(1).read_volatile() };
        let place = (tail & (self.completion_size - 1)) as usize;
        unsafe {
            start.add(2).cast::<NtCqe>().add(place).write(NtCqe {
                user_data: done.token + u64::from(self.asked == BAD_TOKEN),
                code: done.code,
                information: done.information,
            });
            start.add(1).write_volatile(tail.wrapping_add(1));
        }
    }
}

unsafe fn job(entry: *const NtSqe) -> Job {
    let sqe = unsafe { entry.read() };
    let registration = unsafe { entry.cast::<NtRegistration>().read() };
    let file = match sqe.common_flags & 1 {
        0 => File::Raw(sqe.file as HANDLE),
        _ => File::Registered(sqe.file as u32),
    };
    let memory = match sqe.common_flags & 2 {
        0 => Memory::Raw(sqe.buffer as *mut u8),
        _ => Memory::Registered(sqe.buffer as u32, (sqe.buffer >> 32) as u32),
    };
    let what = match sqe.operation {
        0 => What::Nop,
        1 => What::Read(file, memory, sqe.length, sqe.offset),
        2 => What::Files(unsafe { files(registration.rows.cast(), registration.count) }),
        3 => What::Buffers(unsafe { buffers(registration.rows.cast(), registration.count) }),
        4 => What::Cancel(sqe.buffer),
        5 => What::Write(file, memory, sqe.length, sqe.offset),
        6 => What::Flush(file),
        _ => What::Unknown,
    };
    Job {
        token: sqe.user_data,
        what,
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "system" fn NtQueryIoRingCapabilities(
    size: usize,
    out: *mut NtCapabilities,
) -> i32 {
    const INFO_LENGTH_MISMATCH: i32 = 0xC000_0004_u32.cast_signed();
    if size < size_of::<NtCapabilities>() {
        return INFO_LENGTH_MISMATCH;
    }
    unsafe {
        out.write(NtCapabilities {
            version: VERSION,
            max_operation: 8,
            features: FEATURES,
            submission: MAX_SUBMISSIONS,
            completion: MAX_COMPLETIONS,
        });
    }
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "system" fn NtCreateIoRing(
    out: *mut HANDLE,
    _parameters_size: u32,
    parameters: *const NtParameters,
    _info_size: u32,
    info: *mut NtInfo,
) -> i32 {
    let asked = unsafe { parameters.read() };
    let submission_size = asked.submission.next_power_of_two();
    let completion_size = asked.completion.next_power_of_two();
    let mut ring = Box::new(NtRing {
        asked: asked.submission,
        submission_size,
        completion_size,
        submission: vec![0; 2 + 8 * submission_size as usize],
        completion: vec![0; 1 + 3 * completion_size as usize],
        machine: Machine::default(),
    });
    unsafe {
        info.write(NtInfo {
            version: asked.version,
            flags: asked.flags,
            submission_size,
            submission_mask: submission_size - 1 + u32::from(asked.submission == BAD_MASK),
            completion_size,
            completion_mask: completion_size - 1,
            submission: ring.submission.as_mut_ptr().cast(),
            completion: ring.completion.as_mut_ptr().cast(),
        });
        out.write(Box::into_raw(ring).cast());
    }
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "system" fn NtSubmitIoRing(
    ring: HANDLE,
    _flags: u32,
    _wait: u32,
    _timeout: *const i64,
) -> i32 {
    let ring = unsafe { &mut *ring.cast::<NtRing>() };
    let mut jobs = unsafe { ring.take_jobs() };
    if ring.asked == BAD_READ {
        for job in &mut jobs {
            if let What::Read(_, Memory::Raw(address), length, _) = job.what {
                unsafe { ptr::write_bytes(address, 0, length as usize) };
                job.what = What::Nop;
            }
        }
    }
    for done in unsafe { ring.machine.run(jobs) } {
        unsafe { ring.complete(done) };
    }
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "system" fn NtClose(ring: HANDLE) -> i32 {
    drop(unsafe { Box::from_raw(ring.cast::<NtRing>()) });
    0
}
