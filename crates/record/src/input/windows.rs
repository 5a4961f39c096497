//! What Windows is asked for. Its allowance of unsafe code is for a window that nobody sees, which
//! gets raw input, and a hook that is told of the window in front: both live as long as the thread
//! that made them and waits for their messages, and what their callbacks are handed is used only
//! while they run. Raw input comes beside the way that keys take to programs, so that nothing is
//! delayed by it, which a keyboard hook would do.
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

tracelogging::define_provider!(PROVIDER, "Laglab-Input");

/// Whether it is told which key it was.
static WITH_KEYS: AtomicBool = AtomicBool::new(false);

/// The thread that waits for messages.
#[derive(Debug)]
pub(super) struct MessageLoop {
    thread_id: u32,
    thread: JoinHandle<()>,
}

impl MessageLoop {
    pub(super) fn start(with_keys: bool) -> Result<MessageLoop, String> {
        WITH_KEYS.store(with_keys, Ordering::Relaxed);
        let (ready, is_ready) = mpsc::channel();
        let thread = std::thread::spawn(move || match Listener::new() {
            Ok(listener) => {
                // SAFETY: no arguments.
                let _ = ready.send(Ok(unsafe { GetCurrentThreadId() }));
                listener.listen();
            }
            Err(error) => {
                let _ = ready.send(Err(error));
            }
        });
        let started = is_ready.recv();
        let thread_id = started.unwrap_or_else(|_| Err("its thread ended".to_owned()))?;
        Ok(MessageLoop { thread_id, thread })
    }

    pub(super) fn stop(self) {
        // SAFETY: numbers; if the thread is gone, the call fails.
        unsafe { PostThreadMessageW(self.thread_id, WM_QUIT, 0, 0) };
        let _ = self.thread.join();
    }
}

/// A window that gets raw input, and a hook. They are of the thread that makes them.
struct Listener {
    window: HWND,
    hook: HWINEVENTHOOK,
}

impl Listener {
    fn new() -> Result<Listener, String> {
        let last_error = |what: &str| format!("{what}: {}", std::io::Error::last_os_error());
        let name = w!("laglab-input");
        // SAFETY: a program's own module, which is never freed.
        let module = unsafe { GetModuleHandleW(null()) };
        let class = WNDCLASSW {
            style: 0,
            lpfnWndProc: Some(take_message),
            cbClsExtra: 0,
            cbWndExtra: 0,
            hInstance: module,
            hIcon: null_mut(),
            hCursor: null_mut(),
            hbrBackground: null_mut(),
            lpszMenuName: null(),
            lpszClassName: name,
        };
        // SAFETY: the class and its name live longer than the call, its procedure always. That it is
        // there already, from an earlier recorder, is fine.
        unsafe { RegisterClassW(&class) };
        // SAFETY: a class of this program, a window of no other, and nothing handed to it.
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
            return Err(last_error("no window"));
        }
        // Keyboards, by the usage tables of HID; also while other windows are in front.
        let keyboards = RAWINPUTDEVICE {
            usUsagePage: 1,
            usUsage: 6,
            dwFlags: RIDEV_INPUTSINK,
            hwndTarget: window,
        };
        // SAFETY: one device, of the size that is told.
        let is_registered =
            unsafe { RegisterRawInputDevices(&keyboards, 1, size_of::<RAWINPUTDEVICE>() as u32) };
        if is_registered == 0 {
            let error = last_error("no raw input");
            // SAFETY: the window made above, by the thread that made it.
            unsafe { DestroyWindow(window) };
            return Err(error);
        }
        // SAFETY: a callback that always lives, called by this thread while it waits for messages.
        let hook = unsafe {
            SetWinEventHook(
                EVENT_SYSTEM_FOREGROUND,
                EVENT_SYSTEM_FOREGROUND,
                null_mut(),
                Some(take_front),
                0,
                0,
                WINEVENT_OUTOFCONTEXT,
            )
        };
        // SAFETY: a program's provider need not be unregistered before it ends; it is in `drop`.
        unsafe { PROVIDER.register() };
        Ok(Listener { window, hook })
    }

    /// Until the thread is told to quit.
    fn listen(&self) {
        let mut message = MSG {
            hwnd: null_mut(),
            message: 0,
            wParam: 0,
            lParam: 0,
            time: 0,
            pt: windows_sys::Win32::Foundation::POINT { x: 0, y: 0 },
        };
        // SAFETY: a message to be written to; of all windows of this thread.
        while unsafe { GetMessageW(&mut message, null_mut(), 0, 0) } > 0 {
            // SAFETY: the message that was just got.
            unsafe { DispatchMessageW(&message) };
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        PROVIDER.unregister();
        // SAFETY: made by this thread, and not used after this.
        unsafe {
            if !self.hook.is_null() {
                UnhookWinEvent(self.hook);
            }
            DestroyWindow(self.window);
        }
    }
}

unsafe extern "system" fn take_message(
    window: HWND,
    message: u32,
    wparam: WPARAM,
    lparam: LPARAM,
) -> LRESULT {
    if message == WM_INPUT {
        take_key(lparam as HRAWINPUT);
    }
    // SAFETY: what this procedure was called with.
    unsafe { DefWindowProcW(window, message, wparam, lparam) }
}

fn take_key(input: HRAWINPUT) {
    // SAFETY: numbers and unions of numbers, for which zeros are a value.
    let mut raw: RAWINPUT = unsafe { std::mem::zeroed() };
    let mut size = size_of::<RAWINPUT>() as u32;
    let header = size_of::<RAWINPUTHEADER>() as u32;
    // SAFETY: a buffer of the size that is told; the handle is that of the message being handled.
    let got =
        unsafe { GetRawInputData(input, RID_INPUT, (&raw mut raw).cast(), &mut size, header) };
    if got == u32::MAX || raw.header.dwType != RIM_TYPEKEYBOARD {
        return;
    }
    // SAFETY: the header says that this member was written.
    let keyboard = unsafe { raw.data.keyboard };
    if u32::from(keyboard.Flags) & RI_KEY_BREAK != 0 {
        return;
    }
    let code = match WITH_KEYS.load(Ordering::Relaxed) {
        true => u32::from(keyboard.VKey),
        false => 0,
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

unsafe extern "system" fn take_front(
    _hook: HWINEVENTHOOK,
    _event: u32,
    window: HWND,
    _object: i32,
    _child: i32,
    _thread: u32,
    _time: u32,
) {
    let mut process = 0_u32;
    // SAFETY: a number to be written to; of a window that is gone nothing is written.
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
    fn the_provider_is_the_one_that_profiles_name() {
        let guid = PROVIDER.id().to_u128();
        let named = crate::Provider::Input.guid().replace('-', "");
        assert_eq!(guid, u128::from_str_radix(&named, 16).unwrap());
    }
}
