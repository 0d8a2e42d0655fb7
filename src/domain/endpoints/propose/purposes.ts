/**
 * What a value is for, by where it goes: a picture that ends up in `start_image` is the start image, whatever its loader is called;
 * a number without a title that goes to `width` is the width.
 */
import type { Graph } from '../../../../engine/graph/graph.ts'
import type { NodeCatalog } from '../../../../engine/graph/node-catalog.ts'
import type { EditorWorkflow } from '../../workflows/convert/editor/load-workflow.ts'
import { findUsers, type Role, readRoles, type Users } from '../../workflows/convert/parameters.ts'
import type { Labels } from './labels.ts'
import { isGeneric, toName, withoutNumber } from './names.ts'

export interface Purposes {
  /** Whether what a node makes ends up in the positive or the negative input of a sampler. */
  readonly roleOf: (nodeId: string) => Role | null
  /** The name of the input that a picture, a video or a sound is for; an empty text when nothing says so. */
  ofMedia(nodeId: string): string
  /** The same for a number, a text or a switch: only where it goes at once, since what is computed from it is something else. */
  ofValue(nodeId: string): string
  /** Of a loader of pictures: only what it makes of their alpha channel is used. */
  isOnlyMask(nodeId: string): boolean
}

// Between a loader and what it is for lie a few nodes that scale or crop.
const MAX_FOLLOWED = 60

const MEDIA: ReadonlySet<unknown> = new Set(['IMAGE', 'MASK', 'VIDEO', 'AUDIO', 'FILE_3D', 'CLIP_VISION_OUTPUT'])
const VALUES: ReadonlySet<unknown> = new Set(['STRING', 'INT', 'FLOAT', 'BOOLEAN', 'COMBO'])
// They say what is taken, and not what for.
const PLAIN: ReadonlySet<string> = new Set(
  (
    'image images pixels video audio samples file files mask masks alpha expression image_a image_b batch frames destination ' +
    'model_3d model_file mesh input_image input_video delimiter condition bypass exact_match original_image size amount ' +
    'clip_vision_output'
  ).split(' '),
)

/** What a node that shows a subgraph calls something that it takes. */
interface HostInput {
  readonly name: string
  readonly type: string
}

/** `hosts`: what nodes that show subgraphs call what they take; of a graph in API format nothing. */
export function createPurposes(graph: Graph, catalog: NodeCatalog, hosts: ReadonlyMap<string, HostInput>): Purposes {
  let known: Users | null = null
  const isPlain = (name: string) => isGeneric(name) || PLAIN.has(withoutNumber(name)) || PLAIN.has(name)
  /** The first input with a telling name, past nodes that make the same of what they take. */
  function follow(start: string, types: ReadonlySet<unknown>): string {
    known ??= findUsers(graph)
    const queue = [start]
    const visited = new Set(queue)
    let followed = 0
    for (const each of queue) {
      const said = hosts.get(each)
      if (said !== undefined && types.has(said.type) && !isPlain(said.name)) return said.name
      for (const { nodeId, input, slot } of known.get(each) ?? []) {
        if (++followed > MAX_FOLLOWED) return ''
        const type = catalog.find(graph.get(each)?.classType ?? '')?.output[slot]
        // What a sampler or an encoder makes of it is something else.
        if (!types.has(type)) continue
        const name = toName(input.slice(input.lastIndexOf('.') + 1).replace(/^clip_vision_(?!output)/, ''))
        if (!isPlain(name)) return name
        if (!visited.has(nodeId) && types === MEDIA) queue.push(nodeId)
        visited.add(nodeId)
      }
    }
    return ''
  }
  return {
    roleOf: readRoles(graph),
    isOnlyMask(nodeId) {
      known ??= findUsers(graph)
      const users = known.get(nodeId) ?? []
      const output = catalog.find(graph.get(nodeId)?.classType ?? '')?.output ?? []
      return users.length > 0 && users.every(({ slot }) => output[slot] === 'MASK')
    },
    ofMedia: (start) => follow(start, MEDIA),
    ofValue: (start) => follow(start, VALUES),
  }
}

/** By the id of a node of the workflow itself: what a node that shows a subgraph calls the input that it is connected to. */
export function findHostInputs({ root }: EditorWorkflow, labels: Labels): ReadonlyMap<string, HostInput> {
  const found = new Map<string, HostInput>()
  for (const host of root.nodes.values()) {
    if (host.subgraph === null) continue
    for (const { name, type, link: id } of host.inputs) {
      const label = labels.ofInput(null, host.id, name) ?? labels.ofIo(host.type, name) ?? name
      let link = id === null ? undefined : root.links.get(id)
      // Reroute nodes on the way; a file may chain many.
      for (let step = 0; step < MAX_FOLLOWED && link !== undefined; step++) {
        const origin = root.nodes.get(link.originId)
        if (origin?.kind !== 'reroute') break
        const through = origin.inputs[0]?.link ?? null
        link = through === null ? undefined : root.links.get(through)
      }
      const wanted = toName(label.replace(/\(optional\)/i, ''))
      if (link !== undefined && wanted !== '' && !found.has(link.originId))
        found.set(link.originId, { name: wanted, type })
    }
  }
  return found
}
