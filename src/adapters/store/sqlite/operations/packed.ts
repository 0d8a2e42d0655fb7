/**
 * Named values as a list without their names, and back. The inputs of the most frequent operations cross to the writer this
 * way: cloning a message costs more for the names of an object than for most of its values.
 */
declare const unpacked: unique symbol

export type Packed<Value> = readonly unknown[] & { readonly [unpacked]?: Value }

interface Packing<Value> {
  pack(value: Value): Packed<Value>
  unpack(packed: Packed<Value>): Value
}

/** The table names every field, so that the compiler finds a forgotten one; both ends read them in its order. */
export function createPacking<Value extends object>(fields: Readonly<Record<keyof Value, true>>): Packing<Value> {
  const names = Object.keys(fields) as (keyof Value & string)[]
  return {
    pack: (value) => names.map((name) => value[name]),
    unpack(packed) {
      const value: Record<string, unknown> = {}
      for (let index = 0; index < names.length; index += 1) value[names[index]] = packed[index]
      return value as Value
    },
  }
}
