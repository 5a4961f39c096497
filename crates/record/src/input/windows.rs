//! Recording of keyboard input and of the foreground window with functions of Windows. Unsafe code is
//! allowed for two objects: a message-only window that receives raw input, and a hook on the foreground
//! window. One thread creates both, handles their messages and destroys them. Their callbacks use their
//! arguments only during the call. Raw input does not delay keys on their way to programs, but a keyboard
//! hook would.
#![allow(unsafe_code)]

use std::mem::size_of;
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread::JoinHandle;

use windows_sys::Win32::Foundation::{HWND, LPARAM, LRESULT, WPARAM};
use windows_sys::Win32::System::LibraryLoader::GetModuleHandleW;
use windows_sys::Win32::System::Threading::GetCurrentThreadId;
use windows_sys::Win32::UI::Accessibility::{HWINEVENTHOOK, SetWinEventHook, UnhookWinEvent};
use windows_sys::Win32::UI::Input::{
    GetRawInputData, HRAWINPUT, RAWINPUT, RAWINPUTDEVICE, RAWINPUTHEADER, RID_INPUT,
    RIDEV_INPUTSINK, RIM_TYPEKEYBOARD, RegisterRawInputDevices,
};
use windows_sys::Win32::UI::WindowsAndMessaging::{
    CreateWindowExW, DefWindowProcW, DestroyWindow, DispatchMessageW, EVENT_SYSTEM_FOREGROUND,
    GetMessageW, GetWindowThreadProcessId, HWND_MESSAGE, MSG, PostThreadMessageW, RI_KEY_BREAK,
    RegisterClassW, WINEVENT_OUTOFCONTEXT, WM_INPUT, WM_QUIT, WNDCLASSW,
};
use windows_sys::core::w;

use super::RecorderError;

tracelogging::define_provider!(PROVIDER, "Laglab-Input");

/// True if key codes are logged.
static WITH_KEYS: AtomicBool = AtomicBool::new(false);

/// Thread that handles the messages of the window and the hook.
#[derive(Debug)]
pub(super) struct MessageLoop {
    thread_id: u32,
    thread: JoinHandle<()>,
}

impl MessageLoop {
    pub(super) fn start(with_keys: bool) -> Result<MessageLoop, RecorderError> {
        WITH_KEYS.store(with_keys, Ordering::Relaxed);
        let (ready, is_ready) = mpsc::channel();
        let thread = std::thread::spawn(move || match Listener::new() {
            Ok(listener) => {
                // SAFETY: the function takes no arguments.
                let _ = ready.send(Ok(unsafe { GetCurrentThreadId() }));
                listener.listen();
            }
            Err(error) => {
                let _ = ready.send(Err(error));
            }
        });
        let started = is_ready.recv();
        let thread_id = started.unwrap_or_else(|_| {
            Err(RecorderError::Refused {
                call: "the thread of the recorder",
                source: std::io::Error::other("it ended at once"),
            })
        })?;
        Ok(MessageLoop { thread_id, thread })
    }

    pub(super) fn stop(self) {
        // SAFETY: the arguments are numbers. If the thread has ended, the call fails.
        unsafe { PostThreadMessageW(self.thread_id, WM_QUIT, 0, 0) };
        let _ = self.thread.join();
    }
}

/// A window that receives raw input, and a hook on the foreground window. Both belong to the thread that
/// creates them.
struct Listener {
    window: HWND,
    hook: HWINEVENTHOOK,
}

impl Listener {
    fn new() -> Result<Listener, RecorderError> {
        let last_error = |call| RecorderError::Refused {
            call,
            source: std::io::Error::last_os_error(),
        };
        let name = w!("laglab-input");
        // SAFETY: a null name means the module of this program, which is never freed.
        let module = unsafe { GetModuleHandleW(null()) };
        let class = WNDCLASSW {
            style: 0,
            lpfnWndProc: Some(on_message),
            cbClsExtra: 0,
            cbWndExtra: 0,
            hInstance: module,
            hIcon: null_mut(),
            hCursor: null_mut(),
            hbrBackground: null_mut(),
            lpszMenuName: null(),
            lpszClassName: name,
        };
        // SAFETY: the class and its name outlive the call, and the window procedure is static. If an earlier
        // recorder registered the class, the call fails. This error is ignored, because the class exists.
        unsafe { RegisterClassW(&class) };
        // SAFETY: the class is registered, there is no parent window, and no data is passed.
        let window = unsafe {
            CreateWindowExW(
                0,
                name,
                name,
                0,
                0,
                0,
                0,
                0,
                HWND_MESSAGE,
                null_mut(),
                module,
                null(),
            )
        };
        if window.is_null() {
            return Err(last_error("CreateWindowExW"));
        }
        // This device selects keyboards according to the HID usage tables. `RIDEV_INPUTSINK` selects input
        // for all windows.
        let keyboards = RAWINPUTDEVICE {
            usUsagePage: 1,
            usUsage: 6,
            dwFlags: RIDEV_INPUTSINK,
            hwndTarget: window,
        };
        // SAFETY: the arguments are one device and the size of its structure.
        let is_registered =
            unsafe { RegisterRawInputDevices(&keyboards, 1, size_of::<RAWINPUTDEVICE>() as u32) };
        if is_registered == 0 {
            let error = last_error("RegisterRawInputDevices");
            // SAFETY: this thread created the window above.
            unsafe { DestroyWindow(window) };
            return Err(error);
        }
        // SAFETY: the callback is static. This thread calls it while it waits for messages.
        let hook = unsafe {
            SetWinEventHook(
                EVENT_SYSTEM_FOREGROUND,
                EVENT_SYSTEM_FOREGROUND,
                null_mut(),
                Some(on_foreground),
                0,
                0,
                WINEVENT_OUTOFCONTEXT,
            )
        };
        // SAFETY: the provider is static, and `drop` unregisters it.
        unsafe { PROVIDER.register() };
        Ok(Listener { window, hook })
    }

    /// Handles messages until the thread receives `WM_QUIT`.
    fn listen(&self) {
        let mut message = MSG {
            hwnd: null_mut(),
            message: 0,
            wParam: 0,
            lParam: 0,
            time: 0,
            pt: windows_sys::Win32::Foundation::POINT { x: 0, y: 0 },
        };
        // SAFETY: the message is valid for writes; null means all windows of this thread.
        while unsafe { GetMessageW(&mut message, null_mut(), 0, 0) } > 0 {
            // SAFETY: `GetMessageW` just filled in the message.
            unsafe { DispatchMessageW(&message) };
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        PROVIDER.unregister();
        // SAFETY: this thread created the window and the hook, and neither is used after this call.
        unsafe {
            if !self.hook.is_null() {
                UnhookWinEvent(self.hook);
            }
            DestroyWindow(self.window);
        }
    }
}

unsafe extern "system" fn on_message(
    window: HWND,
    message: u32,
    wparam: WPARAM,
    lparam: LPARAM,
) -> LRESULT {
    if message == WM_INPUT {
        log_key(lparam as HRAWINPUT);
    }
    // SAFETY: these are the arguments with which Windows called this procedure.
    unsafe { DefWindowProcW(window, message, wparam, lparam) }
}

fn log_key(input: HRAWINPUT) {
    // SAFETY: the structure holds numbers and unions of numbers, for which zero is valid.
    let mut raw: RAWINPUT = unsafe { std::mem::zeroed() };
    let mut size = size_of::<RAWINPUT>() as u32;
    let header = size_of::<RAWINPUTHEADER>() as u32;
    // SAFETY: the size is the size of the buffer. The handle belongs to the message that is being handled.
    let got =
        unsafe { GetRawInputData(input, RID_INPUT, (&raw mut raw).cast(), &mut size, header) };
    if got == u32::MAX || raw.header.dwType != RIM_TYPEKEYBOARD {
        return;
    }
    // SAFETY: the header states that Windows wrote this member of the union.
    let keyboard = unsafe { raw.data.keyboard };
    if u32::from(keyboard.Flags) & RI_KEY_BREAK != 0 {
        return;
    }
    let code = if WITH_KEYS.load(Ordering::Relaxed) {
        u32::from(keyboard.VKey)
    } else {
        0
    };
    tracelogging::write_event!(
        PROVIDER,
        "KeyDown",
        id_version(1, 0),
        level(Informational),
        keyword(1),
        u32("VirtualKey", &code),
    );
}

unsafe extern "system" fn on_foreground(
    _hook: HWINEVENTHOOK,
    _event: u32,
    window: HWND,
    _object: i32,
    _child: i32,
    _thread: u32,
    _time: u32,
) {
    let mut process = 0_u32;
    // SAFETY: `process` is valid for writes. If the window is destroyed, the call writes nothing.
    unsafe { GetWindowThreadProcessId(window, &mut process) };
    tracelogging::write_event!(
        PROVIDER,
        "WindowInFront",
        id_version(2, 0),
        level(Informational),
        keyword(2),
        u32("ProcessId", &process),
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn provider_guid_matches_its_name() {
        let guid = PROVIDER.id().to_u128();
        let named = crate::Provider::Input.guid().replace('-', "");
        assert_eq!(guid, u128::from_str_radix(&named, 16).unwrap());
    }
}
