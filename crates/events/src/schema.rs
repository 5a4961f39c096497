//! Description of an event's payload. Kernel tables, manifests, TraceLogging and `TRACE_EVENT_INFO` all
//! produce a [`Schema`]. [`crate::decode`] uses the schema to read payloads.

use std::sync::Arc;

use etl::Guid;

/// Names and layout of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schema {
    /// Provider or event-class GUID.
    pub provider: Guid,
    /// Name of the provider or kernel class, for example `Process`. `None` if the name is unknown.
    pub provider_name: Option<Arc<str>>,
    /// Name of the event. For kernel events, this is the name within the class, for example `DCStart`. For
    /// TraceLogging events, this is the event name. For manifest events, this is the task and the opcode, for
    /// example `ProcessStart/Start`.
    pub name: Arc<str>,
    /// Message template of the manifest (`%1 …`), or format string of a WPP message.
    pub message: Option<Arc<str>>,
    /// Source of the schema.
    pub source: Source,
    /// Top-level fields in payload order.
    pub fields: Vec<Field>,
}

/// Source of a schema. If several sources describe a manifest event, the source that is earlier in this list
/// has the higher authority.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Source {
    /// A TraceLogging event, which describes itself.
    TraceLogging,
    /// A `TRACE_EVENT_INFO` event in the trace.
    TraceMetadata,
    /// A manifest that an EventSource wrote into the trace.
    EventSource,
    /// A manifest that the user supplied.
    UserManifest,
    /// The built-in selection of manifest events. The counts and structs in it may be incomplete.
    BuiltIn,
    /// The built-in table of the kernel's event classes.
    Kernel,
    /// A TMF file that the user supplied.
    Tmf,
}

/// One field of a payload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// Name of the field.
    pub name: Arc<str>,
    /// Layout of the bytes.
    pub in_type: InType,
    /// Format in which the value should be shown.
    pub out_type: OutType,
    /// Number of elements of the field.
    pub count: Count,
    /// Size of an element in bytes, or in characters for strings. It is used if the type does not define the
    /// size.
    pub length: Length,
    /// Names of the field's values. `None` if the values have no names.
    pub map: Option<Arc<ValueMap>>,
    /// Named bits of an integer field. The lowest bits come first.
    pub bits: Vec<BitField>,
    /// True if the field may be missing at the end of the payload.
    pub optional: bool,
}

impl Field {
    /// Creates a field with one element of `in_type` and default formatting.
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

/// Layout of a field's bytes. The list has the in-types of TDH and further types that only kernel events use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InType {
    /// No bytes.
    Null,
    /// UTF-16 text up to a NUL or the payload's end. If [`Field::length`] gives a length, the text has
    /// exactly this number of characters.
    Utf16,
    /// Text of 8-bit characters up to a NUL or the payload's end. If [`Field::length`] gives a length, the
    /// text has exactly this number of bytes. The text is shown as UTF-8 if it is valid UTF-8, otherwise as
    /// Latin-1.
    Ansi,
    /// UTF-16 text to the end of the payload, without a NUL.
    Utf16Rest,
    /// Text of 8-bit characters to the end of the payload, without a NUL.
    AnsiRest,
    /// u16 length in bytes, then UTF-16 text.
    CountedUtf16,
    /// u16 length in bytes, then text of 8-bit characters.
    CountedAnsi,
    /// Big-endian u16 length in bytes, then UTF-16 text.
    ReverseCountedUtf16,
    /// Big-endian u16 length in bytes, then text of 8-bit characters.
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
    /// Bytes. [`Field::length`] is the number of bytes. If the length is `Length::Natural`, the bytes extend
    /// to the payload's end.
    Binary,
    /// u16 length, then bytes (TraceLogging binary, counted binary).
    CountedBinary,
    /// u32 length, then bytes (WBEM hex dump).
    HexDump,
    /// GUID.
    Guid,
    /// Address. It has 4 or 8 bytes, like all pointers of the event.
    Pointer,
    /// Size of a memory block, shown in decimal. It has 4 or 8 bytes, like all pointers of the event.
    SizeT,
    /// FILETIME. It is a u64 in units of 100 ns since 1601.
    FileTime,
    /// SYSTEMTIME: eight u16 (year to millisecond).
    SystemTime,
    /// Security identifier.
    Sid,
    /// TOKEN_USER image (two pointers) and a SID. If there is no SID, the field contains only a u32 with the
    /// value 0.
    WbemSid,
    /// Unsigned 32 bits shown in hexadecimal.
    Hex32,
    /// Unsigned 64 bits shown in hexadecimal.
    Hex64,
    /// Struct with these members in order.
    Struct(Vec<Field>),
    /// Padding, not a value. It ends at a multiple of the pointer size, where the next field starts, as in a
    /// C structure. Among kernel events, only heap events have such padding.
    Align,
}

/// Format in which a value should be shown. The list contains only out-types that change the format. TraceLogging and
/// TDH use different numbers for the same out-types.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OutType {
    /// Format that the in-type implies.
    Default,
    /// Text. The in-type is binary or an integer, and the bytes of the value are the characters.
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
    /// Mark of a value that viewers should not show.
    NoPrint,
}

/// Number of elements of a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Count {
    /// A single value, not an array.
    One,
    /// An array with a fixed number of elements.
    Fixed(u32),
    /// An array. The named earlier field contains the number of elements.
    Field(Arc<str>),
    /// An array. A u16 before the first element contains the number of elements (TraceLogging).
    Prefix16,
    /// An array that ends at the payload's end.
    Rest,
}

/// Size of an element. It is used if the type does not define the size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Length {
    /// Size that the type of the field defines.
    Natural,
    /// Fixed size in bytes, or in characters for UTF-16.
    Fixed(u32),
    /// Size that the named earlier field contains. The unit is bytes, or characters for UTF-16.
    Field(Arc<str>),
}

/// A named group of bits of an integer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BitField {
    /// Name of the bits.
    pub name: Arc<str>,
    /// Index of the lowest bit.
    pub low: u8,
    /// Number of bits in the group.
    pub width: u8,
}

/// Names of a field's values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValueMap {
    /// Name of the map.
    pub name: Arc<str>,
    /// True if the names belong to single bits. False if the names belong to whole values.
    pub is_bitmap: bool,
    /// Values and their names, in the order of the source.
    pub entries: Vec<(u64, Arc<str>)>,
}
