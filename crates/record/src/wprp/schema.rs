//! Schema of profiles: elements, their order and number, and their attributes.

use xml::Node;

use super::Severity;
use super::document::Remarks;
use super::vocabulary::{Since, nearest};
use Since::{Classic, Newer};
use Value::{Any, Boolean, Decimal, HexOrDecimal, Id, Level, OneOf, Tag, Unsigned};

/// Rules for an element.
struct Element {
    name: &'static str,
    attributes: &'static [Attribute],
    /// Child elements, in the order that the schema requires.
    children: &'static [Child],
    /// True if children may come in any order.
    any_order: bool,
    /// True if the content is not checked, because it belongs to a feature of newer releases.
    is_opaque: bool,
}

struct Attribute {
    name: &'static str,
    value: Value,
    is_required: bool,
    since: Since,
}

/// Rules for the value of an attribute.
enum Value {
    /// Any text. The text of a required attribute must not be empty.
    Any,
    /// An id: at least one character, without spaces and colons.
    Id,
    Boolean,
    /// A decimal number with or without a fraction.
    Decimal,
    /// An unsigned integer.
    Unsigned,
    /// An integer from 0 to 255.
    Level,
    /// A keyword mask in hexadecimal or decimal.
    HexOrDecimal,
    /// A pool tag: 1 to 4 characters.
    Tag,
    OneOf(&'static [&'static str]),
}

struct Child {
    element: &'static Element,
    times: Times,
    since: Since,
}

/// Number of times that a child element may occur.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Times {
    Once,
    AtMostOnce,
    AtLeastOnce,
    AnyNumber,
}

const fn element(name: &'static str, attributes: &'static [Attribute]) -> Element {
    with(name, attributes, &[])
}

const fn with(
    name: &'static str,
    attributes: &'static [Attribute],
    children: &'static [Child],
) -> Element {
    Element {
        name,
        attributes,
        children,
        any_order: false,
        is_opaque: false,
    }
}

const fn mixed(
    name: &'static str,
    attributes: &'static [Attribute],
    children: &'static [Child],
) -> Element {
    Element {
        any_order: true,
        ..with(name, attributes, children)
    }
}

const fn opaque(name: &'static str) -> Element {
    Element {
        is_opaque: true,
        ..with(name, &[], &[])
    }
}

const fn required(name: &'static str, value: Value) -> Attribute {
    Attribute {
        name,
        value,
        is_required: true,
        since: Classic,
    }
}

const fn optional(name: &'static str, value: Value) -> Attribute {
    Attribute {
        name,
        value,
        is_required: false,
        since: Classic,
    }
}

const fn newer(name: &'static str, value: Value) -> Attribute {
    Attribute {
        name,
        value,
        is_required: false,
        since: Newer,
    }
}

const fn once(element: &'static Element) -> Child {
    child(element, Times::Once)
}

const fn maybe(element: &'static Element) -> Child {
    child(element, Times::AtMostOnce)
}

const fn some(element: &'static Element) -> Child {
    child(element, Times::AtLeastOnce)
}

const fn any(element: &'static Element) -> Child {
    child(element, Times::AnyNumber)
}

const fn child(element: &'static Element, times: Times) -> Child {
    Child {
        element,
        times,
        since: Classic,
    }
}

const fn since_newer(element: &'static Element) -> Child {
    Child {
        element,
        times: Times::AnyNumber,
        since: Newer,
    }
}

const OPERATION: Attribute = optional("Operation", OneOf(&["Set", "Add", "Remove"]));
const BASE: Attribute = optional("Base", Any);
const ID: Attribute = required("Id", Id);
const TO: Attribute = required("Value", Id);
const STRICT: Attribute = optional("Strict", Boolean);

static ROOT: Element = with(
    "WindowsPerformanceRecorder",
    &[
        required("Version", Decimal),
        // The documentation requires this attribute. This is checked in `rules`.
        optional("Author", Any),
        optional("Team", Any),
        optional("Copyright", Any),
        optional("Company", Any),
        optional("Comments", Any),
        optional("Tag", Any),
    ],
    &[once(&PROFILES), any(&MERGE_PROPERTIES), maybe(&ON_OFF)],
);

static ON_OFF: Element = opaque("OnOffTransitionConfigurations");

static PROFILES: Element = with(
    "Profiles",
    &[],
    &[
        any(&SYSTEM_COLLECTOR),
        any(&EVENT_COLLECTOR),
        any(&HEAP_COLLECTOR),
        any(&SYSTEM_PROVIDER),
        any(&EVENT_PROVIDER),
        any(&HEAP_PROVIDER),
        some(&PROFILE),
        since_newer(&HYPERVISOR_COLLECTOR),
        since_newer(&HARDWARE_COUNTER),
        since_newer(&MICRO_ARCHITECTURE),
        since_newer(&PROCESSOR_TRACE),
    ],
);

static HYPERVISOR_COLLECTOR: Element = opaque("HypervisorEventCollector");
static HARDWARE_COUNTER: Element = opaque("HardwareCounter");
static MICRO_ARCHITECTURE: Element = opaque("MicroArchitecturalConfig");
static PROCESSOR_TRACE: Element = opaque("ProcessorTrace");

const COLLECTOR_CHILDREN: [Child; 8] = [
    maybe(&BUFFER_SIZE),
    maybe(&BUFFERS),
    maybe(&STACK_CACHING),
    since_newer(&BUFFERS_PER_CPU),
    since_newer(&MAXIMUM_FILE_SIZE),
    since_newer(&FILE_MAX),
    since_newer(&FLUSH_TIMER),
    since_newer(&FLUSH_THRESHOLD),
];

static SYSTEM_COLLECTOR: Element = with(
    "SystemCollector",
    &[
        ID,
        BASE,
        optional("Name", Any),
        optional("Realtime", Boolean),
        // The documentation describes these attributes, but the published schema lacks them.
        newer("FileName", Any),
        newer("HostGuestCorrelation", Boolean),
    ],
    &COLLECTOR_CHILDREN,
);

static EVENT_COLLECTOR: Element =
    with("EventCollector", &COLLECTOR_ATTRIBUTES, &COLLECTOR_CHILDREN);

static HEAP_COLLECTOR: Element = with(
    "HeapEventCollector",
    &COLLECTOR_ATTRIBUTES,
    &COLLECTOR_CHILDREN,
);

const COLLECTOR_ATTRIBUTES: [Attribute; 10] = [
    ID,
    BASE,
    optional("Name", Any),
    optional("Private", Boolean),
    optional("ProcessPrivate", Boolean),
    optional("Secure", Boolean),
    optional("Realtime", Boolean),
    newer("FileMode", Any),
    newer("FileName", Any),
    newer("HostGuestCorrelation", Boolean),
];

static BUFFER_SIZE: Element = element("BufferSize", &[OPERATION, required("Value", Unsigned)]);
static BUFFERS: Element = element(
    "Buffers",
    &[
        OPERATION,
        // Percentages of memory may have a fraction.
        required("Value", Decimal),
        optional("PercentageOfTotalMemory", Boolean),
        newer("MaximumBufferSpace", Unsigned),
    ],
);
static STACK_CACHING: Element = element(
    "StackCaching",
    &[
        OPERATION,
        required("BucketCount", Unsigned),
        required("CacheSize", Unsigned),
    ],
);
static BUFFERS_PER_CPU: Element = opaque("BuffersPerCPU");
static MAXIMUM_FILE_SIZE: Element = opaque("MaximumFileSize");
static FILE_MAX: Element = opaque("FileMax");
static FLUSH_TIMER: Element = opaque("FlushTimer");
static FLUSH_THRESHOLD: Element = opaque("FlushThreshold");

const SYSTEM_PROVIDER_CHILDREN: [Child; 6] = [
    any(&SYSTEM_KEYWORDS),
    any(&STACKS),
    any(&POOL_TAGS),
    since_newer(&CAPTURE_ON_START),
    since_newer(&CAPTURE_ON_SAVE),
    since_newer(&CAPTURE_ON_DEMAND),
];

static SYSTEM_PROVIDER: Element = with("SystemProvider", &[ID, BASE], &SYSTEM_PROVIDER_CHILDREN);
static SYSTEM_KEYWORDS: Element = mixed(
    "Keywords",
    &[OPERATION],
    &[any(&SYSTEM_KEYWORD), any(&CUSTOM_KEYWORD)],
);
static SYSTEM_KEYWORD: Element = element(
    "Keyword",
    &[
        required("Value", Any),
        STRICT,
        newer("RundownFlag", OneOf(&["Start", "Stop"])),
    ],
);
static CUSTOM_KEYWORD: Element = element("CustomKeyword", &[required("Value", Any), STRICT]);
static STACKS: Element = mixed(
    "Stacks",
    &[OPERATION],
    &[any(&STACK), since_newer(&CUSTOM_STACK)],
);
static STACK: Element = element("Stack", &[required("Value", Any), STRICT]);
static CUSTOM_STACK: Element = element("CustomStack", &[required("Value", Any)]);
static POOL_TAGS: Element = with("PoolTags", &[OPERATION], &[any(&POOL_TAG)]);
static POOL_TAG: Element = element("PoolTag", &[required("Value", Tag)]);

const EVENT_PROVIDER_CHILDREN: [Child; 11] = [
    any(&KEYWORDS),
    any(&CAPTURE_ON_START_OF_EVENTS),
    any(&CAPTURE_ON_SAVE_OF_EVENTS),
    since_newer(&CAPTURE_ON_DEMAND),
    since_newer(&EVENT_FILTERS),
    since_newer(&EVENT_NAME_FILTERS),
    since_newer(&STACK_FILTERS),
    since_newer(&STACK_EVENT_NAME_FILTERS),
    since_newer(&STACK_KEYWORD_LEVEL_FILTER),
    since_newer(&EXE_FILTERS),
    since_newer(&STACKS_OF_EVENTS),
];

static EVENT_PROVIDER: Element = with(
    "EventProvider",
    &[
        ID,
        BASE,
        optional("Name", Any),
        optional("Level", Level),
        optional("Stack", Boolean),
        optional("NonPagedMemory", Boolean),
        optional("SID", Boolean),
        optional("TSID", Boolean),
        optional("CaptureStateOnly", Boolean),
        STRICT,
        newer("ExcludeInPrivate", Boolean),
        newer("EventKey", Boolean),
        newer("ProcessExeFilter", Any),
    ],
    &EVENT_PROVIDER_CHILDREN,
);

static KEYWORDS: Element = mixed("Keywords", &[OPERATION], &[any(&KEYWORD)]);
static KEYWORD: Element = element("Keyword", &[required("Value", HexOrDecimal)]);
static CAPTURE_ON_START_OF_EVENTS: Element = mixed(
    "CaptureStateOnStart",
    &[OPERATION, newer("Timeout", Unsigned)],
    &[any(&KEYWORD)],
);
static CAPTURE_ON_SAVE_OF_EVENTS: Element = mixed(
    "CaptureStateOnSave",
    &[OPERATION, newer("Timeout", Unsigned)],
    &[any(&KEYWORD)],
);
static CAPTURE_ON_START: Element = opaque("CaptureStateOnStart");
static CAPTURE_ON_SAVE: Element = opaque("CaptureStateOnSave");
static CAPTURE_ON_DEMAND: Element = opaque("CaptureStateOnDemand");
static EVENT_FILTERS: Element = opaque("EventFilters");
static EVENT_NAME_FILTERS: Element = opaque("EventNameFilters");
static STACK_FILTERS: Element = opaque("StackFilters");
static STACK_EVENT_NAME_FILTERS: Element = opaque("StackEventNameFilters");
static STACK_KEYWORD_LEVEL_FILTER: Element = opaque("StackKeywordLevelFilter");
static STACKS_OF_EVENTS: Element = opaque("Stacks");
static EXE_FILTERS: Element = opaque("ProcessExeFilters");

static HEAP_PROVIDER: Element = opaque("HeapEventProvider");

static PROFILE: Element = with(
    "Profile",
    &[
        ID,
        required("Name", Any),
        required("Description", Any),
        required("LoggingMode", OneOf(&["File", "Memory"])),
        required("DetailLevel", OneOf(&["Light", "Verbose"])),
        BASE,
        newer("Strict", Boolean),
        optional("Internal", Boolean),
        optional("Default", Boolean),
    ],
    &[
        any(&PROBLEM_CATEGORIES),
        any(&COLLECTORS),
        since_newer(&MERGE_PROPERTIES),
        since_newer(&COUNTERS),
    ],
);

static PROBLEM_CATEGORIES: Element = opaque("ProblemCategories");
static COUNTERS: Element = opaque("HardwareCounterId");

static COLLECTORS: Element = with(
    "Collectors",
    &[OPERATION],
    &[
        maybe(&SYSTEM_COLLECTOR_ID),
        any(&EVENT_COLLECTOR_ID),
        any(&HEAP_COLLECTOR_ID),
        since_newer(&HYPERVISOR_COLLECTOR_ID),
        since_newer(&COUNTERS),
    ],
);

static HYPERVISOR_COLLECTOR_ID: Element = opaque("HypervisorEventCollectorId");

static SYSTEM_COLLECTOR_ID: Element = with(
    "SystemCollectorId",
    &[TO],
    &[
        maybe(&BUFFER_SIZE),
        maybe(&BUFFERS),
        maybe(&STACK_CACHING),
        maybe(&SYSTEM_PROVIDER_ID),
        maybe(&SYSTEM_PROVIDER),
        since_newer(&MAXIMUM_FILE_SIZE),
        since_newer(&FILE_MAX),
        since_newer(&COUNTERS),
        since_newer(&HARDWARE_COUNTER),
        since_newer(&EVENT_PROVIDERS),
    ],
);

static SYSTEM_PROVIDER_ID: Element = with("SystemProviderId", &[TO], &SYSTEM_PROVIDER_CHILDREN);

const EVENT_COLLECTOR_ID_CHILDREN: [Child; 6] = [
    maybe(&BUFFER_SIZE),
    maybe(&BUFFERS),
    maybe(&STACK_CACHING),
    any(&EVENT_PROVIDERS),
    since_newer(&MAXIMUM_FILE_SIZE),
    since_newer(&FILE_MAX),
];

static EVENT_COLLECTOR_ID: Element = with("EventCollectorId", &[TO], &EVENT_COLLECTOR_ID_CHILDREN);

static EVENT_PROVIDERS: Element = mixed(
    "EventProviders",
    &[OPERATION],
    &[any(&EVENT_PROVIDER_ID), any(&EVENT_PROVIDER)],
);

static EVENT_PROVIDER_ID: Element = with("EventProviderId", &[TO], &EVENT_PROVIDER_CHILDREN);

static HEAP_COLLECTOR_ID: Element = opaque("HeapEventCollectorId");

static MERGE_PROPERTIES: Element = with("TraceMergeProperties", &[], &[some(&MERGE_PROPERTY)]);

static MERGE_PROPERTY: Element = with(
    "TraceMergeProperty",
    &[ID, required("Name", Any), BASE],
    &[
        maybe(&DELETE_PREMERGED),
        any(&CUSTOM_EVENTS),
        since_newer(&FILE_COMPRESSION),
        since_newer(&INJECT_ONLY),
        since_newer(&SKIP_MERGE),
    ],
);

static DELETE_PREMERGED: Element =
    element("DeletePreMergedTraceFiles", &[required("Value", Boolean)]);
static FILE_COMPRESSION: Element = element("FileCompression", &[required("Value", Boolean)]);
static INJECT_ONLY: Element = opaque("InjectOnly");
static SKIP_MERGE: Element = opaque("SkipMerge");
static CUSTOM_EVENTS: Element = with("CustomEvents", &[OPERATION], &[any(&CUSTOM_EVENT)]);
static CUSTOM_EVENT: Element = element("CustomEvent", &[required("Value", Any)]);

/// Checks the root element and all elements below it.
pub(super) fn check(remarks: &mut Remarks<'_, '_>, root: Node<'_, '_>) {
    let name = root.tag_name().name();
    if name != ROOT.name {
        let what = format!("expected the root element `{}`, found `{name}`", ROOT.name);
        return remarks.on(root, Severity::Error, what);
    }
    check_element(remarks, root, &ROOT);
}

fn check_element(remarks: &mut Remarks<'_, '_>, node: Node<'_, '_>, element: &Element) {
    if element.is_opaque {
        return;
    }
    check_attributes(remarks, node, element);
    let mut times = vec![0_u32; element.children.len()];
    // Index in `element.children` of the last classic child that is in its correct place.
    let mut reached = 0;
    for child in node.children() {
        if child.is_text() && child.text().is_some_and(|text| !text.trim().is_empty()) {
            let what = format!("`{}` cannot contain text", element.name);
            remarks.on(child, Severity::Error, what);
        }
        if !child.is_element() {
            continue;
        }
        let name = child.tag_name().name();
        let place = element
            .children
            .iter()
            .position(|known| known.element.name == name);
        let Some(place) = place else {
            let known = element.children.iter().map(|known| known.element.name);
            let hint = nearest(name, known)
                .map_or(String::new(), |known| format!("; did you mean `{known}`?"));
            let what = format!("`{}` cannot contain `{name}`{hint}", element.name);
            remarks.on(child, Severity::Error, what);
            continue;
        };
        let known = &element.children[place];
        times[place] += 1;
        match known.since {
            Newer => {
                let what = format!("`{name}` in `{}` needs a newer WPR", element.name);
                remarks.on(child, Severity::Newer, what);
            }
            Classic if !element.any_order && place < reached => {
                let before = element.children[reached].element.name;
                let what = format!("`{name}` must come before `{before}`");
                remarks.on(child, Severity::Error, what);
            }
            Classic => reached = place,
        }
        if times[place] == 2 && matches!(known.times, Times::Once | Times::AtMostOnce) {
            let what = format!("`{}` can contain only one `{name}`", element.name);
            remarks.on(child, Severity::Error, what);
        }
        check_element(remarks, child, known.element);
    }
    for (known, times) in element.children.iter().zip(times) {
        if times == 0 && matches!(known.times, Times::Once | Times::AtLeastOnce) {
            let what = format!(
                "`{}` has no `{}`; add one",
                element.name, known.element.name
            );
            remarks.on(node, Severity::Error, what);
        }
    }
}

fn check_attributes(remarks: &mut Remarks<'_, '_>, node: Node<'_, '_>, element: &Element) {
    for attribute in node.attributes().filter(|a| a.namespace().is_none()) {
        let name = attribute.name();
        let mut known = element.attributes.iter();
        let Some(known) = known.find(|known| known.name == name) else {
            let names = element.attributes.iter().map(|known| known.name);
            let hint = nearest(name, names)
                .map_or(String::new(), |known| format!("; did you mean `{known}`?"));
            let what = format!(
                "`{}` cannot have the attribute `{name}`{hint}",
                element.name
            );
            remarks.on_attribute(node, name, Severity::Error, what);
            continue;
        };
        if known.since == Newer {
            let what = format!("`{name}` of `{}` needs a newer WPR", element.name);
            remarks.on_attribute(node, name, Severity::Newer, what);
        }
        let value = attribute.value();
        let expected = if known.is_required && value.is_empty() {
            Some("a text".to_owned())
        } else {
            known.value.mismatch(value)
        };
        if let Some(expected) = expected {
            let what = format!("`{name}` must be {expected}, not `{value}`");
            remarks.on_attribute(node, name, Severity::Error, what);
        }
    }
    for known in element.attributes.iter().filter(|known| known.is_required) {
        if !node.has_attribute(known.name) {
            let what = format!(
                "`{}` has no attribute `{}`; add it",
                element.name, known.name
            );
            remarks.on(node, Severity::Error, what);
        }
    }
}

impl Value {
    /// Returns a description of the expected value if the text does not match; otherwise `None`.
    fn mismatch(&self, text: &str) -> Option<String> {
        let is_whole = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let (is_fine, expected) = match self {
            Any => (true, "a text"),
            Id => (
                !text.is_empty() && !text.contains([' ', ':']),
                "a text without spaces or colons",
            ),
            Boolean => (
                ["true", "false", "0", "1"].contains(&text),
                "`true` or `false`",
            ),
            Decimal => (text.trim().parse::<f32>().is_ok(), "a number"),
            Unsigned => (is_whole && text.parse::<u64>().is_ok(), "a whole number"),
            Level => (
                is_whole && text.parse::<u8>().is_ok(),
                "a number from 0 to 255",
            ),
            Tag => (
                (1..=4).contains(&text.chars().count()),
                "a text of 1 to 4 characters",
            ),
            HexOrDecimal => (
                parse_mask(text).is_some(),
                "a number of at most 64 bits, such as 0x200",
            ),
            OneOf(values) => {
                return (!values.contains(&text)).then(|| {
                    let quoted: Vec<String> = values.iter().map(|v| format!("`{v}`")).collect();
                    quoted.join(" or ")
                });
            }
        };
        (!is_fine).then(|| expected.to_owned())
    }
}

/// Parses a keyword mask in decimal or hexadecimal.
pub(super) fn parse_mask(text: &str) -> Option<u64> {
    let text = text.trim();
    let hex = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
    match hex {
        // The function `from_str_radix` would accept a sign.
        Some(digits) if digits.starts_with(['+', '-']) => None,
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None if text.starts_with('+') => None,
        None => text.parse().ok(),
    }
}
