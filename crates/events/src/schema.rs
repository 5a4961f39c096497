//! The shape of a payload: one vocabulary for kernel tables, manifests, TraceLogging and
//! `TRACE_EVENT_INFO`. Every source of meanings produces a [`Schema`]; [`crate::decode`] reads
//! payloads by it.

use std::sync::Arc;

use etl::Guid;

/// How an event is named and laid out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schema {
    /// Provider or event-class GUID.
    pub provider: Guid,
    /// Provider's name, or the kernel class's (`Process`); `None` when no source names it.
    pub provider_name: Option<Arc<str>>,
    /// The event's own name: kernel `DCStart`, TraceLogging event name, or a manifest's task and
    /// opcode joined as in `ProcessStart/Start`.
    pub name: Arc<str>,
    /// The manifest's message template (`%1 …`) or the WPP format string.
    pub message: Option<Arc<str>>,
    /// Where these facts come from.
    pub source: Source,
    /// Top-level fields in payload order.
    pub fields: Vec<Field>,
}

/// Where a schema's facts come from, in falling order of authority for manifest events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Source {
    /// The event describes itself.
    TraceLogging,
    /// `TRACE_EVENT_INFO` in the trace.
    TraceMetadata,
    /// A manifest that an EventSource wrote into the trace.
    EventSource,
    /// A manifest given by the user.
    UserManifest,
    /// The built-in selection of manifest events; counts and structs may be incomplete.
    BuiltIn,
    /// The kernel's event classes.
    Kernel,
    /// A TMF file given by the user.
    Tmf,
}

/// One field of a payload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// Field name.
    pub name: Arc<str>,
    /// How its bytes are laid out.
    pub in_type: InType,
    /// How it is meant to be shown.
    pub out_type: OutType,
    /// How many elements follow each other.
    pub count: Count,
    /// Bytes of an element (characters for strings), where the type does not say.
    pub length: Length,
    /// Names of the values.
    pub map: Option<Arc<ValueMap>>,
    /// Named bits of an integer field, from the lowest.
    pub bits: Vec<BitField>,
    /// The field may be missing at the end of the payload.
    pub optional: bool,
}

impl Field {
    /// A single element of `in_type`, shown as such.
    pub fn new(name: impl Into<Arc<str>>, in_type: InType) -> Field {
        Field {
            name: name.into(),
            in_type,
            out_type: OutType::Default,
            count: Count::One,
            length: Length::Natural,
            map: None,
            bits: Vec::new(),
            optional: false,
        }
    }
}

/// How a field's bytes are laid out: the TDH in-types, and the kernel's own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InType {
    /// No bytes.
    Null,
    /// UTF-16 up to a NUL or the payload's end; exactly [`Field::length`] characters if fixed.
    Utf16,
    /// Bytes up to a NUL or the payload's end; exactly [`Field::length`] bytes if fixed. Shown
    /// as UTF-8 where valid, else as Latin-1.
    Ansi,
    /// UTF-16 to the end of the payload, without a NUL.
    Utf16Rest,
    /// Bytes of text to the end of the payload, without a NUL.
    AnsiRest,
    /// u16 length in bytes, then UTF-16.
    CountedUtf16,
    /// u16 length, then bytes of text.
    CountedAnsi,
    /// Big-endian u16 length in bytes, then UTF-16.
    ReverseCountedUtf16,
    /// Big-endian u16 length, then bytes of text.
    ReverseCountedAnsi,
    /// One UTF-16 unit.
    Utf16Char,
    /// One byte of text.
    AnsiChar,
    /// Signed 8 bits.
    I8,
    /// Unsigned 8 bits.
    U8,
    /// Signed 16 bits.
    I16,
    /// Unsigned 16 bits.
    U16,
    /// Signed 32 bits.
    I32,
    /// Unsigned 32 bits.
    U32,
    /// Signed 64 bits.
    I64,
    /// Unsigned 64 bits.
    U64,
    /// 32-bit float.
    F32,
    /// 64-bit float.
    F64,
    /// 32-bit boolean.
    Bool32,
    /// 8-bit boolean.
    Bool8,
    /// [`Field::length`] bytes; to the payload's end if natural.
    Binary,
    /// u16 length, then bytes (TraceLogging binary, counted binary).
    CountedBinary,
    /// u32 length, then bytes (WBEM hex dump).
    HexDump,
    /// GUID.
    Guid,
    /// Address: 4 or 8 bytes by the event's width.
    Pointer,
    /// Size: 4 or 8 bytes by the event's width, shown in decimal.
    SizeT,
    /// FILETIME: u64 of 100 ns since 1601.
    FileTime,
    /// SYSTEMTIME: eight u16.
    SystemTime,
    /// Security identifier.
    Sid,
    /// TOKEN_USER image (two pointers), then a SID; a leading zero u32 with no SID is 4 bytes.
    WbemSid,
    /// Unsigned 32 bits shown in hexadecimal.
    Hex32,
    /// Unsigned 64 bits shown in hexadecimal.
    Hex64,
    /// Members in order.
    Struct(Vec<Field>),
    /// No value: the following field starts at a multiple of the pointer's size, as in a C
    /// structure. Heap events are the one family of kernel events that is not packed.
    Align,
}

/// How a value is meant to be shown. Only what changes the showing is listed; TraceLogging's and
/// TDH's different numbers both map here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OutType {
    /// As the in-type suggests.
    Default,
    /// Text (of a binary or integer in-type).
    String,
    /// UTF-8 text.
    Utf8,
    /// Boolean.
    Boolean,
    /// Hexadecimal.
    Hex,
    /// Signed decimal.
    Signed,
    /// Unsigned decimal.
    Unsigned,
    /// Process id.
    ProcessId,
    /// Thread id.
    ThreadId,
    /// Port: big-endian u16.
    Port,
    /// IPv4 address in network order.
    Ipv4,
    /// IPv6 address.
    Ipv6,
    /// Socket address.
    SocketAddress,
    /// Win32 error code.
    Win32Error,
    /// NTSTATUS.
    NtStatus,
    /// HRESULT.
    HResult,
    /// Date and time.
    DateTime,
    /// Code address.
    CodePointer,
    /// GUID.
    Guid,
    /// XML text.
    Xml,
    /// JSON text.
    Json,
    /// Not meant to be shown.
    NoPrint,
}

/// How many elements a field has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Count {
    /// A single value, not an array.
    One,
    /// An array of so many elements.
    Fixed(u32),
    /// An array with as many elements as the named earlier field says.
    Field(Arc<str>),
    /// A u16 count precedes the elements (TraceLogging).
    Prefix16,
    /// Elements up to the payload's end.
    Rest,
}

/// The length of an element whose type does not say it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Length {
    /// As the type says.
    Natural,
    /// So many bytes; characters for UTF-16.
    Fixed(u32),
    /// As many bytes or characters as the named earlier field says.
    Field(Arc<str>),
}

/// A named group of bits of an integer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BitField {
    /// Name of the bits.
    pub name: Arc<str>,
    /// Lowest bit.
    pub low: u8,
    /// How many bits.
    pub width: u8,
}

/// Names of a field's values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValueMap {
    /// The map's name.
    pub name: Arc<str>,
    /// Values are sets of bits, each named; else each value has a name.
    pub is_bitmap: bool,
    /// Values and their names, as listed.
    pub entries: Vec<(u64, Arc<str>)>,
}
