/** Damages a JSON document in one to four places, as a bad disk, a bad tool or a bad person might. The same seed, the same damage. */
import { isJsonObject, type JsonObject, type JsonValue } from '../../../lib/json/lossless-json.ts'

type Random = () => number

const ODD_VALUES: readonly JsonValue[] = [
  null,
  true,
  -1,
  0,
  3,
  1e308,
  18446744073709551615n,
  '',
  '-10',
  '__proto__',
  'constructor',
  'Reroute',
  'PrimitiveNode',
  [],
  {},
  [1, 2, 3],
  { nodes: [], links: [] },
]

function pick<T>(items: readonly T[], random: Random): T {
  return items[Math.floor(random() * items.length)]
}

type Holder = JsonObject | JsonValue[]

/** Every object and list of a document, the outer ones first. */
function holders(value: JsonValue, found: Holder[] = []): Holder[] {
  if (Array.isArray(value)) {
    found.push(value)
    for (const item of value) holders(item, found)
  } else if (isJsonObject(value)) {
    found.push(value)
    for (const member of Object.values(value)) holders(member, found)
  }
  return found
}

function copy(value: JsonValue): JsonValue {
  if (Array.isArray(value)) return value.map(copy)
  if (!isJsonObject(value)) return value
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, copy(member)]))
}

export function damage(document: JsonValue, random: Random): JsonValue {
  const damaged = copy(document)
  const times = 1 + Math.floor(random() * 4)
  for (let time = 0; time < times; time++) {
    const all = holders(damaged)
    const holder = pick(all, random)
    if (Array.isArray(holder)) damageList(holder, all, random)
    else damageObject(holder, all, random)
  }
  return damaged
}

function damageList(list: JsonValue[], all: readonly Holder[], random: Random): void {
  const index = Math.floor(random() * list.length)
  const kind = Math.floor(random() * 5)
  if (kind === 0) list.splice(index, 1)
  else if (kind === 1) list.splice(index, 0, pick(ODD_VALUES, random))
  else if (kind === 2 && list.length > 0) list[index] = pick(ODD_VALUES, random)
  else if (kind === 3) list.splice(index, 0, copy(list[index] ?? null))
  else if (list.length > 0) list[index] = copy(pick(all, random))
}

function damageObject(object: JsonObject, all: readonly Holder[], random: Random): void {
  const names = Object.keys(object)
  if (names.length === 0) return
  const name = pick(names, random)
  const kind = Math.floor(random() * 5)
  if (kind === 0) delete object[name]
  else if (kind === 1) object[name] = pick(ODD_VALUES, random)
  else if (kind === 2) object[name] = object[pick(names, random)]
  else if (kind === 3) object[name] = copy(pick(all, random))
  else if (typeof object[name] === 'number') object[name] = Math.floor(random() * 30)
  else object[`${name}x`] = object[name]
}
