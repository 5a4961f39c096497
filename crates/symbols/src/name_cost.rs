//! What it costs to write out the name of an inlined function.
//!
//! Such a name is put together from records that refer to one another. The formatter follows them
//! by calling itself, as deep and as often as they say: a forged PDB could have it overflow the
//! stack, or write for years. Honest records refer to earlier ones, so one walk in their order adds
//! up what each costs.

use pdb_addr2line::pdb::{
    Error, FallibleIterator, IdData, IdInformation, Item, ItemIndex, ItemInformation, TypeData,
    TypeIndex, TypeInformation,
};

/// The most that a name may cost. Those of real programs have tens of parts.
const MAX: Cost = Cost {
    parts: 4096,
    depth: 128,
};

/// Cost of a name.
#[derive(Clone, Copy)]
struct Cost {
    /// How many records are visited.
    parts: u32,
    /// How many of them are inside one another.
    depth: u32,
}

impl Cost {
    const ONE: Cost = Cost { parts: 1, depth: 1 };
    const ENDLESS: Cost = Cost {
        parts: u32::MAX,
        depth: u32::MAX,
    };

    /// Of a record that has others in it.
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

/// Costs of the records of one stream, in their order.
struct Costs {
    first: u32,
    costs: Vec<Cost>,
    /// Whether all were read.
    is_complete: bool,
}

/// Set in an index that leads to another compiland's records, and so to any.
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

    /// Of the record at `index`; those before the first are built-in types, and one past the last
    /// is written as missing. One that has not been seen yet could refer back.
    fn of(&self, index: u32) -> Cost {
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

/// Refuses a PDB with names that cost too much.
///
/// # Errors
/// What is wrong, for people.
pub(crate) fn check(types: &TypeInformation<'_>, ids: &IdInformation<'_>) -> Result<(), String> {
    let types = Costs::read(types, |before, item| match item.parse() {
        Ok(data) => of_type(before, &data),
        Err(_) => Cost::ONE,
    });
    let types = types.map_err(|error| error.to_string())?;
    let of_types = |indices: &[TypeIndex]| Cost::around(indices.iter().map(|i| types.of(i.0)));
    let ids = Costs::read(ids, |before, item| match item.parse() {
        Ok(IdData::Function(f)) => Cost::around(f.scope.map(|scope| before.of(scope.0))),
        Ok(IdData::MemberFunction(f)) => of_types(&[f.parent]),
        Ok(IdData::StringList(list)) => of_types(&list.substrings),
        _ => Cost::ONE,
    });
    let ids = ids.map_err(|error| error.to_string())?;
    let dear = |cost: &Cost| cost.parts > MAX.parts || cost.depth > MAX.depth;
    match ids.costs.iter().position(dear) {
        None => Ok(()),
        Some(at) => Err(format!(
            "the name of id {:#x} refers to itself, or to more than {} others",
            ids.first as usize + at,
            MAX.parts
        )),
    }
}

fn of_type(before: &Costs, data: &TypeData<'_>) -> Cost {
    let of = |indices: &[TypeIndex]| Cost::around(indices.iter().map(|i| before.of(i.0)));
    match data {
        TypeData::Pointer(t) => of(&[t.underlying_type]),
        TypeData::Modifier(t) => of(&[t.underlying_type]),
        TypeData::Enumeration(t) => of(&[t.underlying_type]),
        TypeData::Array(t) => of(&[t.element_type]),
        TypeData::MemberFunction(t) => of(&[t.return_type, t.class_type, t.argument_list]),
        TypeData::Procedure(t) => match t.return_type {
            Some(return_type) => of(&[return_type, t.argument_list]),
            None => of(&[t.argument_list]),
        },
        TypeData::ArgumentList(t) => of(&t.arguments),
        _ => Cost::ONE,
    }
}
