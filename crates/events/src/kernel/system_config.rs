//! SystemConfig events. They are logged at the end of a trace and describe the traced machine.

use super::cursor::Cursor;
use crate::text::Utf16;

/// CPU, hook 0x0B0A: description of the whole machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cpu<'a> {
    /// Nominal frequency of the processors, in MHz.
    pub mhz: u32,
    /// Number of logical processors.
    pub processors: u32,
    /// Size of the machine's memory in megabytes.
    pub memory_mb: u32,
    /// Page size in bytes.
    pub page_size: u32,
    /// Granularity of memory allocations, in bytes.
    pub allocation_granularity: u32,
    /// Name of the machine.
    pub computer_name: Utf16<'a>,
}

impl<'a> Cpu<'a> {
    /// Reads the payload. Returns `None` if the payload is too short.
    pub fn read(payload: &'a [u8], _version: u8, pointer_size: usize) -> Option<Self> {
        let mut cursor = Cursor::new(payload, pointer_size);
        Some(Cpu {
            mhz: cursor.u32()?,
            processors: cursor.u32()?,
            memory_mb: cursor.u32()?,
            page_size: cursor.u32()?,
            allocation_granularity: cursor.u32()?,
            computer_name: cursor.wchars(256)?,
        })
    }
}

/// Processors, hook 0x0B23: one logical processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Processor<'a> {
    /// System-wide index of the processor.
    pub index: u32,
    /// Bit set of processor features.
    pub feature_set: u32,
    /// Frequency of the processor in MHz.
    pub mhz: u32,
    /// Marketing name of the processor.
    pub name: Utf16<'a>,
    /// Text with family, model and stepping.
    pub identifier: Utf16<'a>,
    /// Vendor of the processor, such as `GenuineIntel`.
    pub vendor: Utf16<'a>,
}

impl<'a> Processor<'a> {
    /// Reads the payload. Returns `None` if the payload is too short.
    pub fn read(payload: &'a [u8], _version: u8, pointer_size: usize) -> Option<Self> {
        let mut cursor = Cursor::new(payload, pointer_size);
        Some(Processor {
            index: cursor.u32()?,
            feature_set: cursor.u32()?,
            mhz: cursor.u32()?,
            name: cursor.wchars(64)?,
            // In the MOF class, the vendor is the first of these three texts. In real events, the vendor is
            // the last.
            identifier: cursor.wchars(128)?,
            vendor: cursor.wchars(16)?,
        })
    }
}

/// ProcessorGroup, hook 0x0B1A: the active processors of each processor group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessorGroups<'a> {
    count: u32,
    masks: Cursor<'a>,
}

impl<'a> ProcessorGroups<'a> {
    /// Reads the payload. Returns `None` if the payload is too short.
    pub fn read(payload: &'a [u8], _version: u8, pointer_size: usize) -> Option<Self> {
        let mut cursor = Cursor::new(payload, pointer_size);
        Some(ProcessorGroups {
            count: cursor.u32()?,
            masks: cursor,
        })
    }

    /// Returns a bit mask of the active processors for each group, starting with group 0. Ends
    /// early if the payload is cut short.
    pub fn affinities(&self) -> impl Iterator<Item = u64> + 'a {
        let ProcessorGroups { count, mut masks } = *self;
        (0..count).map_while(move |_| masks.pointer())
    }
}

/// ProcessorNumber, hook 0x0B1B: the group of each logical processor and its number within the group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessorNumbers<'a> {
    count: u32,
    numbers: Cursor<'a>,
}

impl<'a> ProcessorNumbers<'a> {
    /// Reads the payload. Returns `None` if the payload is too short.
    pub fn read(payload: &'a [u8], _version: u8, pointer_size: usize) -> Option<Self> {
        let mut cursor = Cursor::new(payload, pointer_size);
        Some(ProcessorNumbers {
            count: cursor.u32()?,
            numbers: cursor,
        })
    }

    /// Returns the group and the number within the group for each processor. The processors are in the order
    /// of their system-wide indexes. Ends early if the payload is cut short.
    pub fn numbers(&self) -> impl Iterator<Item = (u16, u8)> + 'a {
        let ProcessorNumbers { count, mut numbers } = *self;
        (0..count).map_while(move |_| {
            let number = (numbers.u16()?, numbers.u8()?);
            numbers.skip(1)?;
            Some(number)
        })
    }
}

/// PhyDisk, hook 0x0B0B: one physical disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PhysicalDisk<'a> {
    /// Disk number, as in disk events.
    pub disk: u32,
    /// Sector size in bytes.
    pub bytes_per_sector: u32,
    /// Manufacturer and model of the disk.
    pub manufacturer: Utf16<'a>,
    /// Number of partitions of the disk.
    pub partitions: u32,
    /// True if writes are cached.
    pub write_cache_enabled: bool,
}

impl<'a> PhysicalDisk<'a> {
    /// Reads the payload. Returns `None` if the payload is too short.
    pub fn read(payload: &'a [u8], _version: u8, pointer_size: usize) -> Option<Self> {
        let mut cursor = Cursor::new(payload, pointer_size);
        let (disk, bytes_per_sector) = (cursor.u32()?, cursor.u32()?);
        // The skipped fields are sectors per track, tracks per cylinder, a u64 number of cylinders,
        // and four parts of the SCSI address.
        cursor.skip(4 + 4 + 8 + 16)?;
        Some(PhysicalDisk {
            disk,
            bytes_per_sector,
            manufacturer: cursor.wchars(256)?,
            partitions: cursor.u32()?,
            write_cache_enabled: cursor.u8()? != 0,
        })
    }
}

/// NIC, hook 0x0B0D: one network interface. This type reads version 2 and later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NetworkInterface<'a> {
    /// Hardware address of the interface. It has up to eight bytes.
    pub physical_address: &'a [u8],
    /// Index among IPv4 interfaces.
    pub ipv4_index: u32,
    /// Index among IPv6 interfaces.
    pub ipv6_index: u32,
    /// Description of the interface.
    pub description: Utf16<'a>,
    /// IP addresses, separated by semicolons.
    pub ip_addresses: Utf16<'a>,
    /// DNS servers, separated by semicolons.
    pub dns_servers: Utf16<'a>,
}

impl<'a> NetworkInterface<'a> {
    /// Reads the payload. Returns `None` if the payload is too short or older than version 2.
    pub fn read(payload: &'a [u8], version: u8, pointer_size: usize) -> Option<Self> {
        if version < 2 {
            return None;
        }
        let mut cursor = Cursor::new(payload, pointer_size);
        cursor.skip(8)?;
        let address_size = cursor.u32()?.min(8) as usize;
        Some(NetworkInterface {
            physical_address: payload.get(..address_size)?,
            ipv4_index: cursor.u32()?,
            ipv6_index: cursor.u32()?,
            description: cursor.utf16()?,
            ip_addresses: cursor.utf16()?,
            dns_servers: cursor.utf16()?,
        })
    }
}

/// Services, hook 0x0B0F: one service. This type reads version 2 and later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Service<'a> {
    /// Id of the service's process.
    pub process_id: u32,
    /// State of the service (`dwCurrentState` of `SERVICE_STATUS`).
    pub state: u32,
    /// Tag of the service. The threads of the service have this tag in `Thread::sub_process_tag`.
    pub sub_process_tag: u32,
    /// Short name of the service.
    pub name: Utf16<'a>,
    /// Display name of the service.
    pub display_name: Utf16<'a>,
    /// Image name of the service's process.
    pub process_name: Utf16<'a>,
}

impl<'a> Service<'a> {
    /// Reads the payload. Returns `None` if the payload is too short or older than version 2.
    pub fn read(payload: &'a [u8], version: u8, pointer_size: usize) -> Option<Self> {
        if version < 2 {
            return None;
        }
        let mut cursor = Cursor::new(payload, pointer_size);
        Some(Service {
            process_id: cursor.u32()?,
            state: cursor.u32()?,
            sub_process_tag: cursor.u32()?,
            name: cursor.utf16()?,
            display_name: cursor.utf16()?,
            process_name: cursor.utf16()?,
        })
    }
}
