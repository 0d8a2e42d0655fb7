/** Where an editor had put the nodes of a workflow, read from what it sent along. Nothing in it is trusted. */
type Json = unknown

const MAX_NODES = 10_000
const MAX_GROUPS = 1000
const MAX_TITLE = 200

/** null: nothing was sent along, or nothing that says where nodes are. */
export function toLayoutView(extraData: string) {
  const info = member(parse(extraData), 'extra_pnginfo')
  const workflow = member(info, 'workflow')
  const nodes = listOf(member(workflow, 'nodes')).slice(0, MAX_NODES)
  const placed = nodes.flatMap((node): [string, object][] => {
    const [x, y] = toNumbers(member(node, 'pos'), 2)
    const id = member(node, 'id')
    if (x === undefined || y === undefined || (typeof id !== 'number' && typeof id !== 'string')) return []
    const [w = 210, h = 100] = toNumbers(member(node, 'size'), 2)
    return [[String(id), { x, y, w, h, title: toText(member(node, 'title')), color: toColor(member(node, 'color')) }]]
  })
  if (placed.length === 0) return null
  const groups = listOf(member(workflow, 'groups')).slice(0, MAX_GROUPS).flatMap(toGroup)
  return { nodes: Object.fromEntries(placed), groups }
}

function toGroup(group: Json): object[] {
  const [x, y, w, h] = toNumbers(member(group, 'bounding'), 4)
  if (x === undefined || y === undefined || w === undefined || h === undefined) return []
  return [{ title: toText(member(group, 'title')) ?? '', x, y, w, h, color: toColor(member(group, 'color')) }]
}

function parse(text: string): Json {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}

function member(value: Json, name: string): Json {
  return typeof value === 'object' && value !== null && Object.hasOwn(value, name)
    ? (value as Record<string, Json>)[name]
    : undefined
}

function listOf(value: Json): Json[] {
  return Array.isArray(value) ? value : []
}

/** Editors write a pair as a list, or as an object with the names 0 and 1. */
function toNumbers(value: Json, count: number): number[] {
  const list = Array.isArray(value) ? value : Array.from({ length: count }, (_, index) => member(value, String(index)))
  const numbers = list.slice(0, count)
  return numbers.every((each) => typeof each === 'number' && Number.isFinite(each)) ? (numbers as number[]) : []
}

function toText(value: Json): string | null {
  return typeof value === 'string' ? value.slice(0, MAX_TITLE) : null
}

const COLOR = /^#(?:[0-9a-f]{3}|[0-9a-f]{6})$/i

function toColor(value: Json): string | null {
  return typeof value === 'string' && COLOR.test(value) ? value : null
}
