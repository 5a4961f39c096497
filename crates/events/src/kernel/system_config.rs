//! The machine that was traced, as SystemConfig events describe it at the trace's end.

use super::cursor::Cursor;
use crate::text::Utf16;

/// CPU, hook 0x0B0A: the machine as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cpu<'a> {
    /// Nominal frequency of the processors, in MHz.
    pub mhz: u32,
    /// How many logical processors there are.
    pub processors: u32,
    /// Memory in megabytes.
    pub memory_mb: u32,
    /// Bytes of a page.
    pub page_size: u32,
    /// Granularity of memory allocations, in bytes.
    pub allocation_granularity: u32,
    /// The machine's name.
    pub computer_name: Utf16<'a>,
}

impl<'a> Cpu<'a> {
    /// Reads the payload; `None` if it is too short.
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
    /// System-wide index.
    pub index: u32,
    /// Its features, as bits.
    pub feature_set: u32,
    /// Its frequency in MHz.
    pub mhz: u32,
    /// Its marketing name.
    pub name: Utf16<'a>,
    /// Its family, model and stepping.
    pub identifier: Utf16<'a>,
    /// Its vendor (`GenuineIntel`).
    pub vendor: Utf16<'a>,
}

impl<'a> Processor<'a> {
    /// Reads the payload; `None` if it is too short.
    pub fn read(payload: &'a [u8], _version: u8, pointer_size: usize) -> Option<Self> {
        let mut cursor = Cursor::new(payload, pointer_size);
        Some(Processor {
            index: cursor.u32()?,
            feature_set: cursor.u32()?,
            mhz: cursor.u32()?,
            name: cursor.wchars(64)?,
            // The MOF class lists the vendor first; real events have it last.
            identifier: cursor.wchars(128)?,
            vendor: cursor.wchars(16)?,
        })
    }
}

/// ProcessorGroup, hook 0x0B1A: which processors each group has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessorGroups<'a> {
    count: u32,
    masks: Cursor<'a>,
}

impl<'a> ProcessorGroups<'a> {
    /// Reads the payload; `None` if it is too short.
    pub fn read(payload: &'a [u8], _version: u8, pointer_size: usize) -> Option<Self> {
        let mut cursor = Cursor::new(payload, pointer_size);
        Some(ProcessorGroups {
            count: cursor.u32()?,
            masks: cursor,
        })
    }

    /// The active processors of each group, one bit each, from group 0 on; ends early if the
    /// payload does.
    pub fn affinities(&self) -> impl Iterator<Item = u64> + 'a {
        let ProcessorGroups { count, mut masks } = *self;
        (0..count).map_while(move |_| masks.pointer())
    }
}

/// ProcessorNumber, hook 0x0B1B: where each logical processor sits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessorNumbers<'a> {
    count: u32,
    numbers: Cursor<'a>,
}

impl<'a> ProcessorNumbers<'a> {
    /// Reads the payload; `None` if it is too short.
    pub fn read(payload: &'a [u8], _version: u8, pointer_size: usize) -> Option<Self> {
        let mut cursor = Cursor::new(payload, pointer_size);
        Some(ProcessorNumbers {
            count: cursor.u32()?,
            numbers: cursor,
        })
    }

    /// Group and number within the group of each processor, by system-wide index; ends early if
    /// the payload does.
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
    /// The number that disk events call it by.
    pub disk: u32,
    /// Bytes of a sector.
    pub bytes_per_sector: u32,
    /// Its maker and model.
    pub manufacturer: Utf16<'a>,
    /// How many partitions it has.
    pub partitions: u32,
    /// Writes are cached.
    pub write_cache_enabled: bool,
}

impl<'a> PhysicalDisk<'a> {
    /// Reads the payload; `None` if it is too short.
    pub fn read(payload: &'a [u8], _version: u8, pointer_size: usize) -> Option<Self> {
        let mut cursor = Cursor::new(payload, pointer_size);
        let (disk, bytes_per_sector) = (cursor.u32()?, cursor.u32()?);
        // Sectors per track, tracks per cylinder, u64 cylinders, then four parts of the SCSI
        // address.
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

/// NIC, hook 0x0B0D: one network interface. Since version 2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NetworkInterface<'a> {
    /// Its hardware address, as many bytes as it has, up to eight.
    pub physical_address: &'a [u8],
    /// Its index among IPv4 interfaces.
    pub ipv4_index: u32,
    /// Its index among IPv6 interfaces.
    pub ipv6_index: u32,
    /// Its description.
    pub description: Utf16<'a>,
    /// Its addresses, separated by semicolons.
    pub ip_addresses: Utf16<'a>,
    /// Its name servers, separated by semicolons.
    pub dns_servers: Utf16<'a>,
}

impl<'a> NetworkInterface<'a> {
    /// Reads the payload; `None` if it is too short or older than version 2.
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

/// Services, hook 0x0B0F: one service. Since version 2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Service<'a> {
    /// The process that runs it.
    pub process_id: u32,
    /// Its state (`SERVICE_STATUS`).
    pub state: u32,
    /// The tag that its threads carry.
    pub sub_process_tag: u32,
    /// Its short name.
    pub name: Utf16<'a>,
    /// Its name for people.
    pub display_name: Utf16<'a>,
    /// Name of its process's image.
    pub process_name: Utf16<'a>,
}

impl<'a> Service<'a> {
    /// Reads the payload; `None` if it is too short or older than version 2.
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
