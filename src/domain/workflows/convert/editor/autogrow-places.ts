/** Which input of a growing group a slot is, and what becomes of a group with a gap in it. */
import type { AutogrowGroup, EditorNode, Slot } from './editor-graph.ts'

interface PlaceInGroup {
  readonly groupName: string
  readonly group: AutogrowGroup
  readonly ordinal: number
}

const ORDINAL = /\d+$/

export function placeInGroup(node: EditorNode, slot: Slot): PlaceInGroup | null {
  if (node.autogrow === null) return null
  const groupName = slot.name.slice(0, Math.max(0, slot.name.lastIndexOf('.')))
  const group = node.autogrow.get(groupName)
  if (group === undefined) return null
  const name = slot.name.slice(groupName.length + 1)
  const ordinal = group.names !== null ? group.names.indexOf(name) : Number(ORDINAL.exec(name)?.[0] ?? -1)
  return ordinal < 0 ? null : { groupName, group, ordinal }
}

/**
 * Inputs that grow and must agree on a type are looked at again when the page has loaded. One of them that has no link counts as
 * just disconnected, and the links behind it move up.
 */
export function closeGaps(node: EditorNode): void {
  if (node.autogrow === null || node.matchPlaces.length === 0) return
  const gaps = node.matchPlaces.filter((index) => node.inputs[index]?.link === null)
  for (const index of gaps) closeGap(node, index)
}

function closeGap(node: EditorNode, index: number): void {
  const slot = node.inputs[index]
  const place = slot === undefined ? null : placeInGroup(node, slot)
  if (place === null) return
  const { groupName, group, ordinal } = place
  const stride = group.inputs.length
  if (ordinal + 1 < group.min || stride + index >= node.inputs.length) return
  const members = node.inputs.filter(
    ({ name }) => name.startsWith(`${groupName}.`) && name.lastIndexOf('.') === groupName.length,
  )
  if (members.length % stride !== 0) return
  for (let at = ordinal * stride; at + stride < members.length; at++) members[at].link = members[at + stride].link
  for (const last of members.slice(-stride)) last.link = null
  removeSpare(node, members.slice(group.min * stride), stride)
}

/** One input without a link stays behind the last that has one. */
function removeSpare(node: EditorNode, members: readonly Slot[], stride: number): void {
  let at = members.length - stride
  while (at >= 0 && !members.slice(at, at + stride).some(({ link }) => link !== null)) at -= stride
  const spare = new Set(members.slice(Math.max(0, at + stride * 2)))
  node.inputs = node.inputs.filter((slot) => !spare.has(slot))
}
