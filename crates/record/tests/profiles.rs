//! Tests of the profile checker. Correct profiles pass. For each broken rule, the position is reported.
//! Files that are not profiles are refused.

use record::wprp::{MAX_REMARKS, Remark, Severity, check, select, text};
use record::{EnabledProvider, Kind, Provider};

/// A correct profile in the classic subset, similar to the examples in the documentation.
const GOOD: &str = r#"<?xml version="1.0" encoding="utf-8"?>
<WindowsPerformanceRecorder Version="1.0" Author="author" Comments="an example">
  <Profiles>
    <SystemCollector Id="Kernel" Name="NT Kernel Logger">
      <BufferSize Value="1024"/>
      <Buffers Value="3" PercentageOfTotalMemory="true"/>
      <StackCaching BucketCount="256" CacheSize="3072"/>
    </SystemCollector>
    <EventCollector Id="Events" Name="Event Collector">
      <BufferSize Value="256"/>
      <Buffers Value="128"/>
    </EventCollector>
    <SystemProvider Id="Base">
      <Keywords><Keyword Value="ProcessThread"/><Keyword Value="Loader"/></Keywords>
      <PoolTags><PoolTag Value="a*"/></PoolTags>
    </SystemProvider>
    <SystemProvider Id="Switches" Base="Base">
      <Keywords Operation="Add"><Keyword Value="CSwitch"/><CustomKeyword Value="0x20000200"/></Keywords>
      <Stacks><Stack Value="CSwitch"/><Stack Value="ImageLoad"/></Stacks>
    </SystemProvider>
    <EventProvider Id="Freezes" Name="22FB2CD6-0E7B-422B-A0C7-2FAD1FD0E716" Level="5">
      <Keywords><Keyword Value="0x10"/><Keyword Value="0x200"/></Keywords>
      <CaptureStateOnStart><Keyword Value="0x10"/></CaptureStateOnStart>
    </EventProvider>
    <Profile Id="Lag.Verbose.File" Name="Lag" Description="d" LoggingMode="File" DetailLevel="Verbose">
      <Collectors>
        <SystemCollectorId Value="Kernel"><SystemProviderId Value="Switches"/></SystemCollectorId>
        <EventCollectorId Value="Events"><EventProviders><EventProviderId Value="Freezes"/></EventProviders></EventCollectorId>
      </Collectors>
    </Profile>
    <Profile Id="Lag.Verbose.Memory" Name="Lag" Description="d" Base="Lag.Verbose.File" LoggingMode="Memory" DetailLevel="Verbose"/>
  </Profiles>
  <TraceMergeProperties>
    <TraceMergeProperty Id="Merge" Name="Merge">
      <DeletePreMergedTraceFiles Value="true"/>
      <CustomEvents><CustomEvent Value="ImageId"/><CustomEvent Value="BuildInfo"/></CustomEvents>
    </TraceMergeProperty>
  </TraceMergeProperties>
</WindowsPerformanceRecorder>
"#;

/// Returns the remarks on `GOOD` after one replacement.
#[track_caller]
fn after(piece: &str, replacement: &str) -> Vec<Remark> {
    assert!(GOOD.contains(piece), "{piece}");
    check(&GOOD.replacen(piece, replacement, 1)).unwrap()
}

/// Asserts that one replacement in `GOOD` leads to a single remark. The position of the remark must be the
/// position of the text `at`.
#[track_caller]
fn only(piece: &str, replacement: &str, at: &str, severity: Severity, says: &str) {
    let remarks = after(piece, replacement);
    let changed = GOOD.replacen(piece, replacement, 1);
    let offset = changed.find(at).unwrap();
    let line = changed[..offset].matches('\n').count() + 1;
    let column = offset - changed[..offset].rfind('\n').map_or(0, |n| n + 1) + 1;
    let [remark] = remarks.as_slice() else {
        panic!("{remarks:#?}");
    };
    assert_eq!(
        (
            remark.line as usize,
            remark.column as usize,
            remark.severity
        ),
        (line, column, severity),
        "{remark}"
    );
    assert!(remark.message.contains(says), "{remark}");
}

#[test]
fn a_profile_of_the_classic_subset_passes() {
    assert_eq!(check(GOOD).unwrap(), []);
}

#[test]
fn order_and_number_of_elements_are_checked() {
    use Severity::Error;
    only(
        "<BufferSize Value=\"1024\"/>\n      <Buffers Value=\"3\" PercentageOfTotalMemory=\"true\"/>",
        "<Buffers Value=\"3\"/><BufferSize Value=\"1024\"/>",
        "<BufferSize Value=\"1024\"",
        Error,
        "must come before `Buffers`",
    );
    only(
        "<BufferSize Value=\"256\"/>",
        "<BufferSize Value=\"256\"/><BufferSize Value=\"512\"/>",
        "<BufferSize Value=\"512\"/>",
        Error,
        "only one `BufferSize`",
    );
    only(
        "<PoolTags>",
        "<Pooltag/><PoolTags>",
        "<Pooltag/>",
        Error,
        "did you mean `PoolTags`?",
    );
    only(
        "<PoolTag Value=\"a*\"/>",
        "<PoolTag Value=\"a\"/><PoolTag Value=\"b\"/><PoolTag Value=\"c\"/><PoolTag Value=\"d\"/><PoolTag \
         Value=\"e\"/>",
        "<PoolTag Value=\"e\"/>",
        Error,
        "at most 4",
    );
    only(
        "<Profiles>",
        "<Profiles>text",
        "text",
        Error,
        "cannot contain text",
    );
    let empty = "<WindowsPerformanceRecorder Version=\"1\" Author=\"a\"/>";
    assert!(
        check(empty).unwrap()[0]
            .message
            .contains("has no `Profiles`")
    );
    assert!(
        check("<Profile/>").unwrap()[0]
            .message
            .contains("root element")
    );
}

#[test]
fn attribute_values_are_checked() {
    use Severity::{Advice, Error};
    only(
        " Version=\"1.0\"",
        " Version=\"one\"",
        "Version=\"one\"",
        Error,
        "a number",
    );
    only(
        " Author=\"author\"",
        "",
        "<WindowsPerformanceRecorder",
        Advice,
        "Author",
    );
    only(
        "LoggingMode=\"Memory\"",
        "LoggingMode=\"Memory\" Detaillevel=\"Light\"",
        "Detaillevel=\"Light\"",
        Error,
        "did you mean `DetailLevel`?",
    );
    only(
        "Level=\"5\"",
        "Level=\"256\"",
        "Level=\"256\"",
        Error,
        "0 to 255",
    );
    only(
        "PercentageOfTotalMemory=\"true\"",
        "PercentageOfTotalMemory=\"yes\"",
        "PercentageOfTotalMemory=\"yes\"",
        Error,
        "`true` or `false`",
    );
    only(
        "<Keyword Value=\"0x10\"/>",
        "<Keyword Value=\"0x10000000000000000\"/>",
        "Value=\"0x10000000000000000\"",
        Error,
        "64 bits",
    );
    only(
        "0x20000200",
        "0x123456789",
        "Value=\"0x123456789\"",
        Error,
        "1 to 8 digits",
    );
}

/// The constructs in this test are allowed by the published schema.
#[test]
fn what_the_schema_allows_passes() {
    for (piece, replacement) in [
        (
            "<Keyword Value=\"Loader\"/>",
            "<Keyword Value=\"Loader\" Strict=\"true\"/>",
        ),
        (
            "<PoolTags>",
            "<Keywords Operation=\"Add\"><Keyword Value=\"Power\"/></Keywords><PoolTags>",
        ),
        (
            "Level=\"5\"",
            "Level=\"5\" SID=\"true\" TSID=\"1\" CaptureStateOnly=\"false\"",
        ),
        (
            "<Stack Value=\"ImageLoad\"/>",
            "<Stack Value=\"ImageLoad\"/><Stack Value=\"ReleaseWakeCounterUser\"/>",
        ),
        (
            "<CustomEvent Value=\"BuildInfo\"/>",
            "<CustomEvent Value=\"BuildInfo\"/><CustomEvent Value=\"None\"/>",
        ),
    ] {
        assert_eq!(after(piece, replacement), [], "{replacement}");
    }
    // Ids must be unique within lists. For providers inside a profile, the schema does not require this.
    let itself = "<EventProvider Id=\"Freezes\" Name=\"Other\"/>";
    let own = after(
        "<EventProviderId Value=\"Freezes\"/>",
        &format!("<EventProviderId Value=\"Freezes\"/>{itself}"),
    );
    assert_eq!(own, []);
}

#[test]
fn newer_features_are_reported_as_newer() {
    use Severity::Newer;
    for (piece, replacement, at) in [
        (
            "<StackCaching",
            "<BuffersPerCPU Value=\"4\"/><StackCaching",
            "<BuffersPerCPU",
        ),
        (
            "Name=\"Event Collector\"",
            "Name=\"Event Collector\" HostGuestCorrelation=\"false\"",
            "HostGuestCorrelation=\"false\"",
        ),
        (
            "<SystemProvider Id=\"Base\">",
            "<MicroArchitecturalConfig Id=\"M\"/><SystemProvider Id=\"Base\">",
            "<MicroArchitecturalConfig",
        ),
        (
            "<CaptureStateOnStart>",
            "<StackEventNameFilters FilterIn=\"true\"/><CaptureStateOnStart>",
            "<StackEventNameFilters",
        ),
        (
            " Name=\"NT Kernel Logger\"",
            "",
            "<SystemCollector Id=\"Kernel\"",
        ),
    ] {
        only(piece, replacement, at, Newer, "needs a newer WPR");
    }
}

#[test]
fn repeated_masks_are_reported() {
    only(
        "<Keyword Value=\"0x200\"/>",
        "<Keyword Value=\"0x200\"/><Keyword Value=\"0x10\"/>",
        "Value=\"0x10\"/></Keywords>",
        Severity::Error,
        "in the list twice",
    );
}

#[test]
fn long_pool_tags_are_reported() {
    only(
        "<PoolTag Value=\"a*\"/>",
        "<PoolTag Value=\"Proc*\"/>",
        "Value=\"Proc*\"",
        Severity::Error,
        "1 to 4 characters",
    );
}

#[test]
fn duplicate_ids_are_reported() {
    let remarks = after(
        "<SystemProvider Id=\"Base\">",
        "<SystemProvider Id=\"Kernel\">",
    );
    let messages: Vec<&str> = remarks
        .iter()
        .map(|remark| remark.message.as_str())
        .collect();
    assert_eq!(
        messages[0],
        "the id `Kernel` is already used by a `SystemCollector`"
    );
    // The other provider refers to the old id, so its base is missing.
    assert!(
        messages[1].contains("no `SystemProvider` with the id `Base`"),
        "{messages:?}"
    );
}

#[test]
fn dangling_references_are_reported() {
    use Severity::{Advice, Error};
    only(
        "<SystemProviderId Value=\"Switches\"/>",
        "<SystemProviderId Value=\"Swiches\"/>",
        "Value=\"Swiches\"",
        Error,
        "no `SystemProvider` with the id `Swiches`",
    );
    only(
        "Base=\"Lag.Verbose.File\"",
        "Base=\"Other.Verbose.File\"",
        "Base=\"Other.Verbose.File\"",
        Advice,
        "start WPR with the file",
    );
    only(
        "<SystemProvider Id=\"Base\">",
        "<SystemProvider Id=\"Base\" Base=\"Base\">",
        "Base=\"Base\"",
        Error,
        "circular base",
    );
}

/// Source: documentation of inheritance in WPR. The default of `Operation` is `Set`.
#[test]
fn providers_that_a_profile_drops_from_its_base_are_reported() {
    let base = "Base=\"Lag.Verbose.File\" LoggingMode=\"Memory\" DetailLevel=\"Verbose\"/>";
    let derived = |operation: &str, providers: &str| {
        let open = base.trim_end_matches("/>");
        let collector = "EventCollectorId Value=\"Events\"";
        format!(
            "{open}>\n<Collectors{operation}>\n<{collector} ><EventProviders>{providers}</EventProviders>\
             </EventCollectorId></Collectors></Profile>"
        )
    };
    let provider = "<EventProvider Id=\"Other\" Name=\"Microsoft-Windows-Other\"/>";
    only(
        base,
        &derived("", provider),
        "<EventCollectorId Value=\"Events\" >",
        Severity::Advice,
        "does not record its `Freezes`; add `Operation=\"Add\"`",
    );
    let complete = format!("{provider}<EventProviderId Value=\"Freezes\"/>");
    for (operation, providers) in [(" Operation=\"Add\"", provider), ("", &complete)] {
        assert_eq!(after(base, &derived(operation, providers)), []);
    }
}

#[test]
fn unknown_and_newer_names_are_reported() {
    use Severity::{Error, Newer};
    only(
        "<Keyword Value=\"Loader\"/>",
        "<Keyword Value=\"Loader\"/><Keyword Value=\"DiskIOInitialization\"/>",
        "Value=\"DiskIOInitialization\"",
        Error,
        "did you mean `DiskIOInit`?",
    );
    only(
        "<Keyword Value=\"Loader\"/>",
        "<Keyword Value=\"Loader\"/><Keyword Value=\"WDFDPC\"/>",
        "Value=\"WDFDPC\"",
        Newer,
        "needs a newer WPR",
    );
    only(
        "<Stack Value=\"CSwitch\"/>",
        "<Stack Value=\"CSwitch\"/><Stack Value=\"Profile\"/>",
        "Value=\"Profile\"",
        Error,
        "unknown stack `Profile`",
    );
    only(
        "<CustomEvent Value=\"BuildInfo\"/>",
        "<CustomEvent Value=\"BuildInformation\"/>",
        "Value=\"BuildInformation\"",
        Error,
        "did you mean `BuildInfo`?",
    );
    only(
        "Name=\"NT Kernel Logger\"",
        "Name=\"My Kernel Logger\"",
        "Name=\"My Kernel Logger\"",
        Newer,
        "NT Kernel Logger",
    );
    only(
        "<DeletePreMergedTraceFiles Value=\"true\"/>",
        "<DeletePreMergedTraceFiles Value=\"true\"/><FileCompression Value=\"true\"/>",
        "<FileCompression",
        Newer,
        "needs a newer WPR",
    );
}

#[test]
fn stacks_without_their_keyword_are_reported() {
    // A custom keyword may enable any event, so the test removes it first.
    let without_custom = GOOD.replace("<CustomKeyword Value=\"0x20000200\"/>", "");
    let ready = without_custom.replace(
        "<Stack Value=\"CSwitch\"/>",
        "<Stack Value=\"CSwitch\"/><Stack Value=\"ReadyThread\"/>",
    );
    let remarks = check(&ready).unwrap();
    assert_eq!(remarks.len(), 1, "{remarks:#?}");
    assert_eq!(remarks[0].severity, Severity::Error);
    assert!(
        remarks[0]
            .message
            .contains("need the keyword `ReadyThread`")
    );
    // The base of the provider contains the keyword for `ImageLoad`.
    assert_eq!(check(&without_custom).unwrap(), []);
    let removed = without_custom.replace("Operation=\"Add\"", "Operation=\"Set\"");
    assert!(
        check(&removed).unwrap()[0]
            .message
            .contains("need the keyword `Loader`")
    );
}

#[test]
fn profile_ids_and_missing_logging_modes_are_reported() {
    use Severity::{Advice, Error};
    let renamed = after("Id=\"Lag.Verbose.Memory\"", "Id=\"LagMemory\"");
    assert_eq!(renamed.len(), 1);
    assert_eq!(renamed[0].severity, Error);
    assert!(renamed[0].message.contains("`Lag.Verbose.Memory`"));
    let alone = after(
        "<Profile Id=\"Lag.Verbose.Memory\" Name=\"Lag\" Description=\"d\" Base=\"Lag.Verbose.File\" \
         LoggingMode=\"Memory\" DetailLevel=\"Verbose\"/>",
        "",
    );
    assert_eq!(alone.len(), 1);
    assert_eq!(alone[0].severity, Advice);
    assert!(alone[0].message.contains("logging mode Memory"));
    let lost = after("<CustomEvent Value=\"ImageId\"/>", "");
    assert!(lost[0].message.contains("symbols"));
}

#[test]
fn selection_includes_inherited_values() {
    let selected = select(GOOD, Some("Lag")).unwrap();
    let kinds: Vec<Kind> = selected.capture.kinds().collect();
    let expected = [
        Kind::Processes,
        Kind::Images,
        Kind::ContextSwitches,
        Kind::SwitchStacks,
        Kind::Freezes,
    ];
    assert_eq!(kinds, expected);
    assert_eq!(selected.unused, ["stacks of ImageLoad"]);
    let freezes = EnabledProvider {
        provider: Provider::KernelProcess,
        keywords: 0x210,
    };
    assert_eq!(selected.capture.providers(), [freezes]);
    // The profile for recording in memory inherits from the profile for files.
    let in_memory = select(GOOD, Some("Lag.Verbose.Memory")).unwrap();
    assert_eq!(in_memory.capture, selected.capture);
    // In names for WPR, the level of detail follows a dot.
    assert_eq!(
        select(GOOD, Some("Lag.verbose")).unwrap().profile,
        "Lag.Verbose.File"
    );
    select(GOOD, Some("Lag.light")).unwrap_err();
    assert!(
        select(GOOD, Some("Leg"))
            .unwrap_err()
            .to_string()
            .contains("it has Lag")
    );
}

#[test]
fn hostile_xml_is_refused() {
    let entities = "<!DOCTYPE a [<!ENTITY b \"b\"><!ENTITY c \"&b;&b;\">]><a>&c;</a>";
    assert!(check(entities).unwrap_err().to_string().contains("DTD"));
    let deep = "<a>".repeat(100_000);
    assert!(check(&deep).unwrap_err().to_string().contains("nested"));
    let wide = format!("<a>{}</a>", "<b/>".repeat(150_000));
    check(&wide).unwrap_err();
    let attributes: String = (0..80_000).map(|n| format!(" a{n}=''")).collect();
    let error = check(&format!("<a\n{attributes}/>")).unwrap_err();
    assert!(
        error.to_string().contains("256 attributes at 2:"),
        "{error}"
    );
    let long = " ".repeat(2 << 20);
    check(&long).unwrap_err();
    text(long.as_bytes()).unwrap_err();
    let noise = format!(
        "<WindowsPerformanceRecorder>{}</WindowsPerformanceRecorder>",
        "<b/>".repeat(20_000)
    );
    assert_eq!(check(&noise).unwrap().len(), MAX_REMARKS);
}

#[test]
fn damaged_profiles_do_not_panic() {
    let mut rng = testdata::Rng(1601);
    for _ in 0..3_000 {
        let mut bytes = GOOD.as_bytes().to_vec();
        for _ in 0..1 + rng.below(4) {
            let at = rng.below(bytes.len());
            match rng.below(3) {
                0 => bytes[at] = rng.bits() as u8,
                1 => bytes.truncate(at.max(1)),
                _ => {
                    let (from, length) = (rng.below(bytes.len()), rng.below(200));
                    let piece: Vec<u8> = bytes.iter().skip(from).take(length).copied().collect();
                    bytes.splice(at..at, piece);
                }
            }
        }
        if let Ok(text) = text(&bytes) {
            let _ = check(&text);
            let _ = select(&text, None);
        }
    }
}

#[test]
fn text_is_decoded_from_utf_8_and_utf_16() {
    let utf16 = |unit: fn(u16) -> [u8; 2], mark: [u8; 2]| {
        let units = GOOD.encode_utf16().flat_map(unit);
        mark.into_iter().chain(units).collect::<Vec<u8>>()
    };
    assert_eq!(text(&utf16(u16::to_le_bytes, [0xFF, 0xFE])).unwrap(), GOOD);
    assert_eq!(text(&utf16(u16::to_be_bytes, [0xFE, 0xFF])).unwrap(), GOOD);
    assert_eq!(
        text(&[b"\xEF\xBB\xBF", GOOD.as_bytes()].concat()).unwrap(),
        GOOD
    );
    text(&[0xFF, 0xFE, b'a']).unwrap_err();
    let unmarked: Vec<u8> = GOOD.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let refused = text(&unmarked).unwrap_err();
    assert!(refused.to_string().contains("byte order mark"), "{refused}");
    assert!(check(" \n").unwrap_err().to_string().contains("empty"));
    text(&[0xC3, 0x28]).unwrap_err();
}
