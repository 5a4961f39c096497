//! `input`: keys, mouse and window messages.

use etl::{Event, le};

use crate::column::{Named, Names, Nullable, Text};
use crate::join::Join;
use crate::provider_events::{
    LAGLAB_INPUT, MULTI_INPUT, WIN32K, fields, logged_by, number, signed, text,
};
use crate::schema::table;
use crate::world::{ThreadFinder, World};

table! {
    /// One row per event of the user's input: what the input provider of UIforETW or of `laglab
    /// record input` heard, which tells which key it was only if that was asked for, and what
    /// Windows' window manager (Win32k) did with devices and messages.
    Input, InputView = "input" sorted by time_ns {
        /// When it was logged.
        time_ns: Vec<i64> = "header time",
        /// The CPU that logged it.
        cpu: Vec<u16> = "CPU of the buffer",
        /// What happened: of UIforETW `key_down`, `mouse_down`, `mouse_up`, `mouse_move`,
        /// `mouse_wheel`; of Win32k `device_read_start`, `device_read_stop`,
        /// `pointer_motion_start`, `pointer_motion_stop`, `inject_mouse_start`,
        /// `inject_mouse_stop`, `message_queued`, `message_retrieved`, `dispatch_start`,
        /// `dispatch_stop`.
        kind: Names<InputKind> = "Multi-Input 400-404; Laglab-Input 1; Win32k 63, 72, 73, 79-82, 88, 92, 93",
        /// Virtual key code.
        key_code: Nullable<u32> = "Multi-Input KeyDown: Virtual key code; Laglab-Input KeyDown: VirtualKey",
        /// Name of the key.
        key: Text = "Multi-Input KeyDown: Key name",
        /// How often the key repeated.
        repeats: Nullable<u32> = "Multi-Input KeyDown: Repeat count",
        /// The mouse button.
        button: Nullable<i32> = "Multi-Input MouseDown, MouseUp: Button Type",
        /// How far the wheel was turned.
        wheel_delta: Nullable<i32> = "Multi-Input MouseWheel: zDelta",
        /// Place of the pointer.
        x: Nullable<i32> = "x; Win32k PointerMotion, InjectMouse: X" in "pixels",
        /// Place of the pointer.
        y: Nullable<i32> = "y; Win32k PointerMotion, InjectMouse: Y" in "pixels",
        /// Kind of the device that is read.
        device_type: Nullable<i32> = "Win32k InputDeviceRead: DeviceType",
        /// The window message (`WM_KEYDOWN` is 256).
        message: Nullable<u32> = "Win32k messages: message",
        /// The thread that logged it: of a message its window's.
        thread_id: Nullable<u32> = "header thread",
        /// Row of its thread in `threads`.
        thread_row: Nullable<u32> = "thread_id and time_ns in `threads`",
        /// The process that logged it.
        process_id: Nullable<u32> = "header process",
        /// Row of its process in `processes`.
        process_row: Nullable<u32> = "process_id and time_ns in `processes`",
    }
}

/// What happened to input.
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
    /// The window manager begins to read a device.
    DeviceReadStart,
    /// The window manager has read a device.
    DeviceReadStop,
    /// The pointer's motion begins to be handled.
    PointerMotionStart,
    /// The pointer's motion was handled.
    PointerMotionStop,
    /// A mouse event begins to be injected.
    InjectMouseStart,
    /// A mouse event was injected.
    InjectMouseStop,
    /// An input message was queued for a window.
    MessageQueued,
    /// A thread got an input message.
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

impl InputKind {
    fn of_id(id: u16) -> Option<InputKind> {
        Some(match id {
            63 => InputKind::MessageRetrieved,
            72 => InputKind::DeviceReadStart,
            73 => InputKind::DeviceReadStop,
            79 => InputKind::PointerMotionStart,
            80 => InputKind::PointerMotionStop,
            81 => InputKind::InjectMouseStart,
            82 => InputKind::InjectMouseStop,
            88 => InputKind::MessageQueued,
            92 => InputKind::DispatchStart,
            93 => InputKind::DispatchStop,
            400 => InputKind::MouseDown,
            401 => InputKind::MouseUp,
            402 => InputKind::MouseMove,
            403 => InputKind::MouseWheel,
            404 => InputKind::KeyDown,
            _ => return None,
        })
    }
}

impl Input {
    /// Adds a row; `None` if the payload is unreadable.
    pub(crate) fn push(&mut self, event: &Event<'_>) -> Option<()> {
        let id = event.descriptor()?.id;
        if event.guid() == Some(LAGLAB_INPUT) {
            return self.push_key(event);
        }
        let kind = InputKind::of_id(id)?;
        let provider = if id >= 400 { MULTI_INPUT } else { WIN32K };
        let fields = fields(provider, event)?;
        let (thread_id, process_id) = logged_by(event);
        self.time_ns.push(event.time_ns());
        self.cpu.push(event.cpu());
        self.kind.0.push(kind);
        self.key_code.push(number(&fields, "Virtual key code"));
        self.key.push(text(&fields, "Key name"));
        self.repeats.push(number(&fields, "Repeat count"));
        self.button.push(signed(&fields, "Button Type"));
        self.wheel_delta.push(signed(&fields, "zDelta"));
        self.x
            .push(signed(&fields, "x").or_else(|| signed(&fields, "X")));
        self.y
            .push(signed(&fields, "y").or_else(|| signed(&fields, "Y")));
        self.device_type.push(signed(&fields, "DeviceType"));
        self.message.push(number(&fields, "message"));
        self.thread_id.push(thread_id);
        self.process_id.push(process_id);
        Some(())
    }
}

impl Input {
    /// Adds a key that `laglab record input` logged: its code, which is 0 where it is not told.
    fn push_key(&mut self, event: &Event<'_>) -> Option<()> {
        let code = le::u32(event.payload(), 0)?;
        let (thread_id, process_id) = logged_by(event);
        self.time_ns.push(event.time_ns());
        self.cpu.push(event.cpu());
        self.kind.0.push(InputKind::KeyDown);
        self.key_code.push(Some(code).filter(|code| *code != 0));
        self.key.push(None);
        self.repeats.push(None);
        self.button.push(None);
        self.wheel_delta.push(None);
        self.x.push(None);
        self.y.push(None);
        self.device_type.push(None);
        self.message.push(None);
        self.thread_id.push(thread_id);
        self.process_id.push(process_id);
        Some(())
    }
}

impl Join for Input {
    type State = ThreadFinder;

    fn join(&mut self, threads: &mut ThreadFinder, world: &World<'_>) {
        let (ids, processes) = (&self.thread_id, &self.process_id);
        (self.thread_row, self.process_row) = threads.rows(world, ids, processes, &self.time_ns);
    }
}
