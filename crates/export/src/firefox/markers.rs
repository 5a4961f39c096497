//! Markers for time intervals, and the fields that the profiler shows for them.

use fxprof_processed_profile::{
    CategoryHandle, MarkerFieldFlags, MarkerFieldFormat, Profile, StaticSchemaMarker,
    StaticSchemaMarkerField, StringHandle,
};

/// Marker for a DPC or an interrupt service routine.
pub(super) struct Routine {
    pub(super) kind: StringHandle,
    pub(super) routine: StringHandle,
}

impl StaticSchemaMarker for Routine {
    const UNIQUE_MARKER_TYPE_NAME: &'static str = "Interrupt";
    const CHART_LABEL: Option<&'static str> = Some("{marker.data.routine}");
    const TABLE_LABEL: Option<&'static str> = Some("{marker.data.routine}");
    const FIELDS: &'static [StaticSchemaMarkerField] = &[StaticSchemaMarkerField {
        key: "routine",
        label: "Routine",
        format: MarkerFieldFormat::String,
        flags: MarkerFieldFlags::SEARCHABLE,
    }];

    fn name(&self, _profile: &mut Profile) -> StringHandle {
        self.kind
    }

    fn category(&self, _profile: &mut Profile) -> CategoryHandle {
        CategoryHandle::OTHER
    }

    fn string_field_value(&self, _field: u32) -> StringHandle {
        self.routine
    }

    fn number_field_value(&self, _field: u32) -> f64 {
        0.0
    }
}

/// Marker for a disk request.
pub(super) struct Request {
    pub(super) kind: StringHandle,
    pub(super) path: StringHandle,
    pub(super) disk: u32,
    pub(super) bytes: u32,
}

impl StaticSchemaMarker for Request {
    const UNIQUE_MARKER_TYPE_NAME: &'static str = "DiskIo";
    const CHART_LABEL: Option<&'static str> = Some("{marker.data.path}");
    const TABLE_LABEL: Option<&'static str> =
        Some("{marker.data.bytes} on disk {marker.data.disk}: {marker.data.path}");
    const FIELDS: &'static [StaticSchemaMarkerField] = &[
        StaticSchemaMarkerField {
            key: "path",
            label: "File",
            format: MarkerFieldFormat::FilePath,
            flags: MarkerFieldFlags::SEARCHABLE,
        },
        StaticSchemaMarkerField {
            key: "disk",
            label: "Disk",
            format: MarkerFieldFormat::Integer,
            flags: MarkerFieldFlags::empty(),
        },
        StaticSchemaMarkerField {
            key: "bytes",
            label: "Size",
            format: MarkerFieldFormat::Bytes,
            flags: MarkerFieldFlags::empty(),
        },
    ];

    fn name(&self, _profile: &mut Profile) -> StringHandle {
        self.kind
    }

    fn category(&self, _profile: &mut Profile) -> CategoryHandle {
        CategoryHandle::OTHER
    }

    fn string_field_value(&self, _field: u32) -> StringHandle {
        self.path
    }

    fn number_field_value(&self, field: u32) -> f64 {
        match field {
            1 => self.disk.into(),
            _ => self.bytes.into(),
        }
    }
}

/// Marker for a hard page fault.
pub(super) struct Fault;

impl StaticSchemaMarker for Fault {
    const UNIQUE_MARKER_TYPE_NAME: &'static str = "HardFault";
    const FIELDS: &'static [StaticSchemaMarkerField] = &[];

    fn name(&self, profile: &mut Profile) -> StringHandle {
        profile.intern_string("hard fault")
    }

    fn category(&self, _profile: &mut Profile) -> CategoryHandle {
        CategoryHandle::OTHER
    }

    fn string_field_value(&self, _field: u32) -> StringHandle {
        unreachable!("it has no fields")
    }

    fn number_field_value(&self, _field: u32) -> f64 {
        unreachable!("it has no fields")
    }
}
