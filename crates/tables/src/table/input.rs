//! `input`: keys, mouse and window messages.

use crate::column::{Named, Names, Nullable, Text};
use crate::register::{EventTable, Reader, Register};
use crate::schema::table;
use crate::table::Table;
use crate::trackers::{ThreadFinder, Trackers};

table! {
    /// One row per event of user input. The input providers of UIforETW and of `laglab record input` report keys and
    /// the mouse. They report the pressed key only if the recording requested key codes. The window manager (Win32k)
    /// reports how it handled devices and messages.
    Input, InputView = "input" sorted by time_ns
        title "Input"
        record "input (provider Microsoft-Windows-Win32k, or UIforETW's Multi-Input)"
    {
        /// Time of the event.
        time_ns: Vec<i64> = "header time",
        /// CPU that logged the event.
        cpu: Vec<u16> = "CPU of the buffer",
        /// Kind of the event. Kinds from input providers are `key_down`, `mouse_down`, `mouse_up`,
        /// `mouse_move` and `mouse_wheel`. Kinds from Win32k are `device_read_start`, `device_read_stop`,
        /// `pointer_motion_start`, `pointer_motion_stop`, `inject_mouse_start`, `inject_mouse_stop`,
        /// `message_queued`, `message_retrieved`, `dispatch_start` and `dispatch_stop`.
        kind: Names<InputKind> = "Multi-Input 400-404; Laglab-Input 1; Win32k 63, 72, 73, 79-82, 88, 92, 93",
        /// Virtual key code of the pressed key.
        key_code: Nullable<u32> = "Multi-Input KeyDown: Virtual key code; Laglab-Input KeyDown: VirtualKey",
        /// Name of the pressed key.
        key: Text = "Multi-Input KeyDown: Key name",
        /// Number of repetitions of the key.
        repeats: Nullable<u32> = "Multi-Input KeyDown: Repeat count",
        /// Number of the mouse button.
        button: Nullable<i32> = "Multi-Input MouseDown, MouseUp: Button Type",
        /// Rotation of the mouse wheel.
        wheel_delta: Nullable<i32> = "Multi-Input MouseWheel: zDelta",
        /// Horizontal position of the pointer.
        x: Nullable<i32> = "x; Win32k PointerMotion, InjectMouse: X" in "pixels",
        /// Vertical position of the pointer.
        y: Nullable<i32> = "y; Win32k PointerMotion, InjectMouse: Y" in "pixels",
        /// Type of the device that is read.
        device_type: Nullable<i32> = "Win32k InputDeviceRead: DeviceType",
        /// Window message (`WM_KEYDOWN` is 256).
        message: Nullable<u32> = "Win32k messages: message",
        /// Thread that logged the event. For a message, this is the thread of the window.
        thread_id: Nullable<u32> = "header thread",
        /// Row of the thread in `threads`.
        thread_row: Nullable<u32> = "thread_id and time_ns in `threads`",
        /// Process that logged the event.
        process_id: Nullable<u32> = "header process",
        /// Row of the process in `processes`.
        process_row: Nullable<u32> = "process_id and time_ns in `processes`",
    }
}

/// Kind of an input event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum InputKind {
    /// A key was pressed.
    KeyDown,
    /// A mouse button was pressed.
    MouseDown,
    /// A mouse button was released.
    MouseUp,
    /// The mouse was moved.
    MouseMove,
    /// The wheel was turned.
    MouseWheel,
    /// The window manager starts to read a device.
    DeviceReadStart,
    /// The window manager has read a device.
    DeviceReadStop,
    /// The window manager starts to handle a motion of the pointer.
    PointerMotionStart,
    /// The window manager handled a motion of the pointer.
    PointerMotionStop,
    /// The injection of a mouse event starts.
    InjectMouseStart,
    /// A mouse event was injected.
    InjectMouseStop,
    /// An input message was queued for a window.
    MessageQueued,
    /// A thread retrieved an input message.
    MessageRetrieved,
    /// A window procedure is called with a message.
    DispatchStart,
    /// A window procedure returned.
    DispatchStop,
}

impl Named for InputKind {
    const NAMES: &'static [&'static str] = &[
        "key_down",
        "mouse_down",
        "mouse_up",
        "mouse_move",
        "mouse_wheel",
        "device_read_start",
        "device_read_stop",
        "pointer_motion_start",
        "pointer_motion_stop",
        "inject_mouse_start",
        "inject_mouse_stop",
        "message_queued",
        "message_retrieved",
        "dispatch_start",
        "dispatch_stop",
    ];

    fn code(self) -> i8 {
        self as i8
    }
}

impl Register for Input {
    const NEEDS: &'static [Reader] = &[
        Reader::Table(Table::Processes),
        Reader::Table(Table::Threads),
    ];
}

impl EventTable for Input {
    type Raw = Input;
    type State = ThreadFinder;

    fn join(raw: &mut Input, threads: &mut ThreadFinder, trackers: &Trackers<'_>) -> Input {
        let mut rows = std::mem::take(raw);
        let (ids, processes) = (&rows.thread_id, &rows.process_id);
        (rows.thread_row, rows.process_row) =
            threads.find_rows(trackers, ids, processes, &rows.time_ns);
        rows
    }
}
