//! Writer of the profile for Windows Performance Recorder. It uses only the classic subset of the schema,
//! which every release of WPR reads.

use std::fmt::Write as _;

use super::{Detail, Kit};
use crate::{Buffers, Provider};

/// Writes the profile. The order is collectors, providers, profiles and merge properties.
pub(super) fn write(kit: &Kit) -> String {
    // The verbose level includes the light level, so its capture contains all collectors and providers of
    // the profile.
    let verbose = kit.with_detail(Detail::Verbose);
    let question = escaped(kit.investigation.question());
    let mut text = String::new();
    let out = &mut text;
    line(out, 0, r#"<?xml version="1.0" encoding="utf-8"?>"#);
    line(
        out,
        0,
        &format!(
            r#"<WindowsPerformanceRecorder Version="1.0" Author="laglab" Comments="{question}">"#
        ),
    );
    line(out, 1, "<Profiles>");
    write_collectors(out, &verbose);
    write_providers(out, &verbose);
    for detail in Detail::ALL {
        let of_detail = kit.with_detail(detail);
        for (mode, _) in MODES {
            write_profile(out, &of_detail, mode, &question);
        }
    }
    line(out, 1, "</Profiles>");
    write_merge_properties(out);
    line(out, 0, "</WindowsPerformanceRecorder>");
    text
}

/// Writes the collectors of each logging mode: the session of the kernel, and that of other providers.
fn write_collectors(out: &mut String, kit: &Kit) {
    for (mode, in_memory) in MODES {
        let (kernel, _) = kit.buffers(in_memory);
        line(
            out,
            2,
            &format!(r#"<SystemCollector Id="SystemCollector.{mode}" Name="NT Kernel Logger">"#),
        );
        write_buffers(out, kernel);
        if kit.capture().stacks().next().is_some() {
            line(
                out,
                3,
                r#"<StackCaching BucketCount="256" CacheSize="3072"/>"#,
            );
        }
        line(out, 2, "</SystemCollector>");
    }
    for (mode, in_memory) in MODES {
        if let (_, Some(buffers)) = kit.buffers(in_memory) {
            line(
                out,
                2,
                &format!(r#"<EventCollector Id="EventCollector.{mode}" Name="laglab">"#),
            );
            write_buffers(out, buffers);
            line(out, 2, "</EventCollector>");
        }
    }
}

/// Writes the kernel's events of each level of detail, and the other providers.
fn write_providers(out: &mut String, kit: &Kit) {
    for detail in Detail::ALL {
        let capture = kit.with_detail(detail).capture();
        line(
            out,
            2,
            &format!(r#"<SystemProvider Id="SystemProvider.{}">"#, detail.name()),
        );
        let keywords: Vec<&str> = capture.keywords().map(|keyword| keyword.wpr()).collect();
        write_values(out, 3, "Keywords", "Keyword", &keywords);
        let stacks: Vec<&str> = capture.stacks().map(|stack| stack.wpr()).collect();
        write_values(out, 3, "Stacks", "Stack", &stacks);
        line(out, 2, "</SystemProvider>");
    }
    for enabled in kit.capture().providers() {
        let provider = enabled.provider;
        let start = format!(
            r#"<EventProvider Id="{}" Name="{}" Level="5" NonPagedMemory="true""#,
            id(provider),
            provider.session_name()
        );
        if enabled.keywords == 0 {
            line(out, 2, &format!("{start}/>"));
            continue;
        }
        line(out, 2, &format!("{start}>"));
        let keywords = format!("{:#x}", enabled.keywords);
        write_values(out, 3, "Keywords", "Keyword", &[&keywords]);
        line(out, 2, "</EventProvider>");
    }
}

/// Writes how WPR merges the recorded files into one trace.
fn write_merge_properties(out: &mut String) {
    line(out, 1, "<TraceMergeProperties>");
    line(
        out,
        2,
        r#"<TraceMergeProperty Id="TraceMerge" Name="TraceMerge">"#,
    );
    line(out, 3, r#"<DeletePreMergedTraceFiles Value="true"/>"#);
    // Events that WPR copies into the merged trace. `ImageId` contains the identities of images, which the search for
    // symbols needs.
    const MERGED: [&str; 5] = [
        "ImageId",
        "BuildInfo",
        "VolumeMapping",
        "EventMetadata",
        "NetworkInterface",
    ];
    write_values(out, 3, "CustomEvents", "CustomEvent", &MERGED);
    line(out, 2, "</TraceMergeProperty>");
    line(out, 1, "</TraceMergeProperties>");
}

/// Writes a `Profile` element, which refers to collectors and providers that are written earlier.
fn write_profile(out: &mut String, kit: &Kit, mode: &str, question: &str) {
    let (name, detail) = (kit.name(), kit.detail.name());
    line(
        out,
        2,
        &format!(
            r#"<Profile Id="{name}.{detail}.{mode}" Name="{name}" Description="{question}" LoggingMode="{mode}" DetailLevel="{detail}">"#
        ),
    );
    line(out, 3, "<Collectors>");
    line(
        out,
        4,
        &format!(r#"<SystemCollectorId Value="SystemCollector.{mode}">"#),
    );
    line(
        out,
        5,
        &format!(r#"<SystemProviderId Value="SystemProvider.{detail}"/>"#),
    );
    line(out, 4, "</SystemCollectorId>");
    let capture = kit.capture();
    if !capture.providers().is_empty() {
        line(
            out,
            4,
            &format!(r#"<EventCollectorId Value="EventCollector.{mode}">"#),
        );
        line(out, 5, "<EventProviders>");
        for enabled in capture.providers() {
            let id = id(enabled.provider);
            line(out, 6, &format!(r#"<EventProviderId Value="{id}"/>"#));
        }
        line(out, 5, "</EventProviders>");
        line(out, 4, "</EventCollectorId>");
    }
    line(out, 3, "</Collectors>");
    line(out, 2, "</Profile>");
}

/// Names of the logging modes. The second field is true if the trace is kept in memory.
const MODES: [(&str, bool); 2] = [("File", false), ("Memory", true)];

fn id(provider: Provider) -> String {
    format!("EventProvider.{}", provider.name())
}

fn line(out: &mut String, depth: usize, text: &str) {
    let _ = writeln!(out, "{:1$}{text}", "", depth * 2);
}

fn write_buffers(out: &mut String, buffers: Buffers) {
    line(
        out,
        3,
        &format!(r#"<BufferSize Value="{}"/>"#, buffers.size_kib),
    );
    line(out, 3, &format!(r#"<Buffers Value="{}"/>"#, buffers.count));
}

fn write_values(out: &mut String, depth: usize, list: &str, item: &str, values: &[&str]) {
    if values.is_empty() {
        return;
    }
    line(out, depth, &format!("<{list}>"));
    for value in values {
        line(out, depth + 1, &format!(r#"<{item} Value="{value}"/>"#));
    }
    line(out, depth, &format!("</{list}>"));
}

/// Escapes text for an attribute value.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('"', "&quot;")
}
