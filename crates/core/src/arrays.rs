//! How a saved state holds what serde by itself does not know, arrays of more than 32 elements, or would
//! write at length: lists that are mostly zeros.

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// For `#[serde(with = "crate::arrays")]` on a field `[T; N]`.
pub(crate) fn serialize<S: Serializer, T: Serialize, const N: usize>(
    array: &[T; N],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    array.as_slice().serialize(serializer)
}

/// The other way.
pub(crate) fn deserialize<'de, D: Deserializer<'de>, T: Deserialize<'de>, const N: usize>(
    deserializer: D,
) -> Result<[T; N], D::Error> {
    let all = Vec::<T>::deserialize(deserializer)?;
    let elements = all.len();
    <[T; N]>::try_from(all)
        .map_err(|_| Error::invalid_length(elements, &"as many as the array has"))
}

/// For `#[serde(with = "crate::arrays::list")]` on a field `Vec<[T; N]>`.
pub(crate) mod list {
    use super::{Deserialize, Deserializer, Error, Serialize, Serializer};

    pub(crate) fn serialize<S: Serializer, T: Serialize, const N: usize>(
        arrays: &[[T; N]],
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        arrays.as_flattened().serialize(serializer)
    }

    pub(crate) fn deserialize<
        'de,
        D: Deserializer<'de>,
        T: Copy + Deserialize<'de>,
        const N: usize,
    >(
        deserializer: D,
    ) -> Result<Vec<[T; N]>, D::Error> {
        let all = Vec::<T>::deserialize(deserializer)?;
        let (arrays, rest) = all.as_chunks();
        match rest {
            [] => Ok(arrays.to_vec()),
            rest => Err(D::Error::invalid_length(rest.len(), &"whole arrays")),
        }
    }
}

/// For `#[serde(with = "crate::arrays::sparse")]` on a list that is mostly zeros and as long as the drive
/// is large: only what is not zero. Zeroed memory that is not touched stays free when it is loaded.
pub(crate) mod sparse {
    use super::{Deserialize, Deserializer, Error, Serialize, Serializer};

    pub(crate) fn serialize<S: Serializer>(list: &[u32], serializer: S) -> Result<S::Ok, S::Error> {
        let numbered = (0u32..).zip(list.iter().copied());
        let others: Vec<(u32, u32)> = numbered.filter(|&(_, value)| value != 0).collect();
        (list.len() as u64, others).serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<u32>, D::Error> {
        let (length, others) = <(u64, Vec<(u32, u32)>)>::deserialize(deserializer)?;
        if length > u64::from(u32::MAX) {
            return Err(D::Error::custom("a list longer than any drive's"));
        }
        let mut list = vec![0; length as usize];
        for (at, value) in others {
            *list
                .get_mut(at as usize)
                .ok_or_else(|| D::Error::custom("an element beyond the end of its list"))? = value;
        }
        Ok(list)
    }
}
