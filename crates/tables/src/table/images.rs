//! `images`: programs, libraries and drivers mapped into processes.

use crate::column::{Nullable, Text};
use crate::register::{Reader, Register};
use crate::schema::table;

table! {
    /// One row per image mapped into a process, or into the kernel (`process_id` 0).
    ///
    /// If an image was already mapped when the trace began, its `load_ns` is null. If it was still mapped
    /// when the trace ended, its `unload_ns` is null. Only traces that were merged on the recorded machine
    /// have symbol identities and file versions.
    /// On Linux, `base_address` is the address at which the start of the file would be mapped. So an address minus
    /// `base_address` is an offset in the file, except for the kernel.
    Images, ImagesView = "images" sorted by first_seen_ns
        title "Images"
        record "images (xperf -on LOADER, WPR keyword Loader)"
        lives load_ns to unload_ns
    {
        /// Time of the first event about the image.
        first_seen_ns: Vec<i64> = "first event: header time",
        /// Time at which the image was mapped; null if it was mapped before the trace.
        load_ns: Nullable<i64> = "Image Load: header time",
        /// Time at which the image was unmapped; null if it was unmapped after the trace.
        unload_ns: Nullable<i64> = "Image Unload: header time",
        /// Process into which the image is mapped; 0 for the kernel's modules. Unknown if the event has
        /// version 0 and its header contains no process.
        process_id: Nullable<u32> = "ProcessId",
        /// Address at which the image is mapped.
        base_address: Vec<u64> = "ImageBase",
        /// Size of the image in memory.
        size_bytes: Vec<u64> = "ImageSize",
        /// Path of the file. It has a drive letter if the trace maps the volume to a drive letter.
        path: Text = "FileName; SysConfigEx VolumeMapping" wpa "Image Path",
        /// Path of the file in the form that the kernel uses.
        nt_path: Text = "FileName",
        /// Link time of the file. If the build of the file is reproducible, this is a hash.
        time_date_stamp: Nullable<u32> = "TimeDateStamp; ImageId: TimeDateStamp",
        /// Checksum of the file.
        checksum: Nullable<u32> = "ImageChecksum",
        /// Preferred base address of the file.
        default_base: Nullable<u64> = "DefaultBase",
        /// Signing level: 0 unchecked, 1 unsigned, 2 enterprise, 4 Authenticode, 6 store, 8 antimalware, 12
        /// Windows, 14 Windows TCB. Present since version 3 (Windows 8.1).
        signature_level: Nullable<u8> = "SignatureLevel",
        /// Source of the signature: 0 none, 1 embedded, 2 cached, 3 catalog cached, 4 catalog uncached, 5
        /// catalog hint, 6 package catalog. Present since version 3 (Windows 8.1).
        signature_type: Nullable<u8> = "SignatureType",
        /// File name at link time.
        original_file_name: Text = "ImageId: OriginalFileName",
        /// GUID of the PDB with the symbols.
        pdb_guid: Text = "DbgIdRSDS: GuidSig",
        /// Age of the PDB. This is the number of times that the PDB was rewritten.
        pdb_age: Nullable<u32> = "DbgIdRSDS: Age",
        /// Path of the PDB at link time.
        pdb_path: Text = "DbgIdRSDS: PdbFileName",
        /// Build id of a file of Linux, in hexadecimal. The linker writes it into the file.
        build_id: Text = "MMAP2, HEADER_BUILD_ID: build id",
        /// Version of the file.
        file_version: Text = "FileVersion: FileVersion",
        /// Version of the product.
        product_version: Text = "FileVersion: ProductVersion",
        /// Name of the product.
        product_name: Text = "FileVersion: ProductName",
        /// Company that made the file.
        company_name: Text = "FileVersion: CompanyName",
        /// Description of the file.
        file_description: Text = "FileVersion: FileDescription",
    }
}

impl Register for Images {
    const NEEDS: &'static [Reader] = &[Reader::Volumes];
}
