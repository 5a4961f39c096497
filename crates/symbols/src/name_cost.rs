//! Cost of formatting the names of inlined functions.
//!
//! The name of an inlined function is composed of records that refer to other records. The formatter follows
//! these references recursively. Therefore, a forged PDB could overflow the stack or make the formatter write
//! forever. Valid records refer only to earlier records. So one pass over the records, in their order,
//! computes all costs.

use pdb_addr2line::pdb::{
    Error, FallibleIterator, IdData, IdInformation, Item, ItemIndex, ItemInformation, TypeData,
    TypeIndex, TypeInformation,
};

use crate::pdb::{PdbError, unreadable};

/// Maximum cost of a name. The names in real programs consist of at most some tens of records.
const MAX: Cost = Cost {
    parts: 4096,
    depth: 128,
};

/// Cost of formatting one name.
#[derive(Clone, Copy)]
struct Cost {
    /// Number of visited records.
    parts: u32,
    /// Depth of nested records.
    depth: u32,
}

impl Cost {
    const ONE: Cost = Cost { parts: 1, depth: 1 };
    const ENDLESS: Cost = Cost {
        parts: u32::MAX,
        depth: u32::MAX,
    };

    /// Returns the cost of a record. The record refers to other records with the costs `inner`.
    fn around(inner: impl IntoIterator<Item = Cost>) -> Cost {
        let all = inner.into_iter().fold((0u32, 0), |(parts, depth), cost| {
            (parts.saturating_add(cost.parts), cost.depth.max(depth))
        });
        Cost {
            parts: all.0.saturating_add(1),
            depth: all.1.saturating_add(1),
        }
    }
}

/// Costs of the records in one stream, in the order of the stream.
struct Costs {
    first: u32,
    costs: Vec<Cost>,
    /// True if all records were read.
    is_complete: bool,
}

/// Flag of an index that refers to a record of another compilation unit. Such a record is unknown here.
const CROSS_MODULE: u32 = 1 << 31;

impl Costs {
    fn read<'t, I: ItemIndex>(
        stream: &'t ItemInformation<'_, I>,
        cost: impl Fn(&Costs, &Item<'t, I>) -> Cost,
    ) -> Result<Costs, Error> {
        let mut costs = Costs {
            first: 0,
            costs: Vec::new(),
            is_complete: false,
        };
        let mut items = stream.iter();
        while let Some(item) = items.next()? {
            if costs.costs.is_empty() {
                costs.first = item.index().into();
            }
            let next = cost(&costs, &item);
            costs.costs.push(next);
        }
        costs.is_complete = true;
        Ok(costs)
    }

    /// Returns the cost of the record at `index`. An index below the first record refers to a built-in type. For
    /// an index after the last record, the formatter only writes that the record is missing. In these two cases,
    /// the cost is one record. A reference to a record that was not visited yet could be circular, so the cost of
    /// that record is infinite.
    fn cost(&self, index: u32) -> Cost {
        let Some(at) = index.checked_sub(self.first) else {
            return Cost::ONE;
        };
        match self.costs.get(at as usize) {
            Some(cost) => *cost,
            None if self.is_complete && index & CROSS_MODULE == 0 => Cost::ONE,
            None => Cost::ENDLESS,
        }
    }
}

/// Checks that the names in a PDB do not cost too much.
///
/// # Errors
/// Returns an error if a name costs more than the maximum.
pub(crate) fn check(types: &TypeInformation<'_>, ids: &IdInformation<'_>) -> Result<(), PdbError> {
    let types = Costs::read(types, |before, item| match item.parse() {
        Ok(data) => of_type(before, &data),
        Err(_) => Cost::ONE,
    });
    let types = types.map_err(unreadable)?;
    let of_types = |indices: &[TypeIndex]| Cost::around(indices.iter().map(|i| types.cost(i.0)));
    let ids = Costs::read(ids, |before, item| match item.parse() {
        Ok(IdData::Function(f)) => Cost::around(f.scope.map(|scope| before.cost(scope.0))),
        Ok(IdData::MemberFunction(f)) => of_types(&[f.parent]),
        Ok(IdData::StringList(list)) => of_types(&list.substrings),
        _ => Cost::ONE,
    });
    let ids = ids.map_err(unreadable)?;
    let dear = |cost: &Cost| cost.parts > MAX.parts || cost.depth > MAX.depth;
    match ids.costs.iter().position(dear) {
        None => Ok(()),
        Some(at) => Err(PdbError::Unreadable(format!(
            "the name of id {:#x} refers to itself, or to more than {} other records",
            ids.first as usize + at,
            MAX.parts
        ))),
    }
}

fn of_type(before: &Costs, data: &TypeData<'_>) -> Cost {
    let cost_of = |indices: &[TypeIndex]| Cost::around(indices.iter().map(|i| before.cost(i.0)));
    match data {
        TypeData::Pointer(t) => cost_of(&[t.underlying_type]),
        TypeData::Modifier(t) => cost_of(&[t.underlying_type]),
        TypeData::Enumeration(t) => cost_of(&[t.underlying_type]),
        TypeData::Array(t) => cost_of(&[t.element_type]),
        TypeData::MemberFunction(t) => cost_of(&[t.return_type, t.class_type, t.argument_list]),
        TypeData::Procedure(t) => match t.return_type {
            Some(return_type) => cost_of(&[return_type, t.argument_list]),
            None => cost_of(&[t.argument_list]),
        },
        TypeData::ArgumentList(t) => cost_of(&t.arguments),
        _ => Cost::ONE,
    }
}
