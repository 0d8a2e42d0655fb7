/** Files of about a megabyte that are made to keep a converter busy: many parts that each could belong to many others. */
import type { JsonObject, JsonValue } from '../../../lib/json/lossless-json.ts'

const TARGET_BYTES = 1_000_000

type Node = Record<string, JsonValue>

const node = (id: number, type: string, more: Node = {}): Node => ({ id, type, ...more })
const range = (count: number): number[] => Array.from({ length: count }, (_, index) => index)
const slot = (name: string, link: number | null, more: Node = {}): Node => ({ name, type: '*', link, ...more })
const shown = (count: number, from = 10_000): Node[] => range(count).map((index) => node(from + index, 'sub'))
const subgraph = (more: Node): Node => ({
  id: 'sub',
  name: 'sub',
  nodes: [],
  links: [],
  inputs: [],
  outputs: [],
  ...more,
})
const LONG_TYPE = range(250)
  .map((index) => `T${index}`)
  .join(',')

const FEW = 10
const SOME = 60

/** As large as fits, but for a few bytes: what `make` gives grows evenly with the number. */
function fill(make: (count: number) => JsonObject, most: number): JsonObject {
  if (most < SOME) return make(most)
  const [few, some] = [FEW, SOME].map((count) => JSON.stringify(make(count)).length)
  const each = (some - few) / (SOME - FEW)
  return make(Math.max(1, Math.min(most, Math.floor(FEW + (TARGET_BYTES - few) / each - 0.02 * most))))
}

function reroutes(length: number, mode = 0, type = 'Reroute'): JsonObject {
  const chain = range(length).map((index) =>
    node(index + 2, type, {
      mode,
      inputs: [slot('', index + 1, { type: 'MODEL' })],
      outputs: [{ type: 'MODEL', links: [index + 2] }],
    }),
  )
  const source = node(1, 'CheckpointLoaderSimple', { outputs: [{ type: 'MODEL', links: [1] }] })
  const save = node(length + 2, 'ModelSave', { inputs: [slot('model', length + 1, { type: 'MODEL' })] })
  return {
    nodes: [source, ...chain, save],
    links: range(length + 1).map((index) => [index + 1, index + 1, 0, index + 2, 0]),
  }
}

/** Subgraphs of two nodes that show the next one: what is shown doubles from one to the next. */
function doubling(depth: number): JsonObject {
  const subgraphs = range(depth).map((level) =>
    subgraph({
      id: `s${level}`,
      nodes: range(2).map((each) =>
        node(level * 2 + each + 1, level + 1 === depth ? 'EmptyLatentImage' : `s${level + 1}`),
      ),
    }),
  )
  return { nodes: [node(9_000_001, 's0')], definitions: { subgraphs } }
}

/** A chain of subgraphs, each shown once by the one before it and switched off at its beginning, with many nodes at its end. */
function deep(count: number): JsonObject {
  const depth = 1_500
  const subgraphs = range(depth).map((level) =>
    subgraph({
      id: `s${level}`,
      nodes:
        level + 1 === depth
          ? range(count).map((index) => node(10_000 + index, 'Note'))
          : [node(level + 1, `s${level + 1}`)],
    }),
  )
  return { nodes: [node(9_000_001, 's0', { mode: 2 })], definitions: { subgraphs } }
}

/** Every way through the deepest subgraph has a long name. */
function deepLinks(count: number): JsonObject {
  const depth = 60
  const id = (level: number) => `${'n'.repeat(100)}${level}`
  const { nodes, links } = reroutes(count)
  const subgraphs = range(depth).map((level) =>
    level + 1 === depth
      ? subgraph({ id: `s${level}`, nodes, links })
      : subgraph({ id: `s${level}`, nodes: [{ id: id(level + 1), type: `s${level + 1}` }] }),
  )
  return { nodes: [{ id: id(0), type: 's0' }], definitions: { subgraphs } }
}

/** Many nodes that show a subgraph, each with an old list of widgets for which the subgraph has to get inputs. */
function proxies(count: number): JsonObject {
  const inner = range(40).map((index) =>
    node(index + 1, 'KSampler', {
      inputs: ['seed', 'steps', 'cfg'].map((name) => ({ ...slot(name, null), widget: { name } })),
    }),
  )
  const proxyWidgets = range(900).map((index) => [String((index % 40) + 1), ['seed', 'steps', 'cfg'][index % 3]])
  const hosts = range(count).map((index) => node(1_000 + index, 'sub', { properties: { proxyWidgets } }))
  return { nodes: hosts, definitions: { subgraphs: [subgraph({ nodes: inner })] } }
}

const HARD_NAME = '1:'.repeat(450)

export const HARD_FILES: Readonly<Record<string, () => JsonObject>> = {
  'a large ordinary graph': () =>
    fill((count) => {
      const nodes = range(count).map((index) =>
        node(index + 1, 'KSampler', {
          inputs: [slot('model', index === 0 ? null : index, { type: 'MODEL' })],
          outputs: [{ type: 'LATENT', links: [index + 1] }],
          widgets_values: [index, 'fixed', 20, 8, 'euler', 'normal', 1],
        }),
      )
      return {
        nodes,
        links: range(count)
          .map((index) => [index, index, 0, index + 1, 0, 'MODEL'])
          .slice(1),
      }
    }, 20_000),
  'as many nodes as a file may have': () => ({ nodes: range(20_000).map((index) => node(index + 1, 'KSampler')) }),
  'nodes of the class with the most inputs': () => ({
    nodes: range(20_000).map((index) => node(index + 1, 'ModelMergeQwenImage')),
  }),
  'nodes of one class that nobody has': () => ({ nodes: range(20_000).map((index) => node(index + 1, 'Nobody')) }),
  'Reroute nodes in a row': () => fill((count) => reroutes(count), 19_000),
  'bypassed nodes in a row': () => fill((count) => reroutes(count, 4, 'Nobody'), 19_000),
  'links in a circle': () =>
    fill((count) => {
      const { nodes, links } = reroutes(count) as { nodes: Node[]; links: JsonValue[] }
      return { nodes, links: [[1, count + 1, 0, 2, 0], ...links.slice(1)] }
    }, 19_000),
  'subgraphs that double': () => doubling(30),
  'subgraphs in subgraphs': () => fill(deep, 15_000),
  'links deep inside of subgraphs': () => fill(deepLinks, 15_000),
  'subgraphs in circles': () => ({
    nodes: [node(1, 's0')],
    definitions: {
      subgraphs: range(1_900).map((level) =>
        subgraph({ id: `s${level}`, nodes: [node(1, `s${(level + 1) % 1_900}`)] }),
      ),
    },
  }),
  'one subgraph, shown by many': () =>
    fill(
      (count) => ({ nodes: shown(count), definitions: { subgraphs: [subgraph({ nodes: [node(1, 'Nobody')] })] } }),
      19_000,
    ),
  'a subgraph with many outputs, shown by many': () =>
    fill(
      (count) => ({
        nodes: shown(count),
        definitions: { subgraphs: [subgraph({ outputs: range(1_000).map(() => ({})) })] },
      }),
      19_000,
    ),
  'old lists of widgets': () => fill(proxies, 1_000),
  'names of widgets that are hard to read': () =>
    fill((count) => {
      const proxyWidgets = range(900).map((index) => ['1', `${HARD_NAME}${index}`])
      const hosts = range(count).map((index) => node(10 + index, 'sub', { properties: { proxyWidgets } }))
      return { nodes: hosts, definitions: { subgraphs: [subgraph({ nodes: [node(1, 'KSampler')] })] } }
    }, 100),
  'inputs of a subgraph that name each other’s links': () =>
    fill((count) => {
      const inputs = range(1_000).map((index) => slot(`i${index}`, index, { widget: { name: 'nothing' } }))
      const links = range(1_000).map((index) => [index, -10, 0, 1, index])
      const linkIds = range(1_000)
      const shownInputs = range(count).map((index) => ({ name: `x${index}`, type: '*', linkIds }))
      return {
        nodes: shown(2),
        definitions: { subgraphs: [subgraph({ nodes: [node(1, 'Nobody', { inputs })], links, inputs: shownInputs })] },
      }
    }, 900),
  'inputs that the class does not have': () =>
    fill((count) => {
      const source = node(1, 'CheckpointLoaderSimple', { outputs: [{ type: 'MODEL', links: range(count * 900) }] })
      const nodes = range(count).map((index) =>
        node(index + 2, 'KSampler', {
          inputs: range(900).map((each) => slot('x', index * 900 + each, { widget: { name: 'gone' } })),
        }),
      )
      return {
        nodes: [source, ...nodes],
        links: range(count * 900).map((id) => [id, 1, 0, 2 + Math.floor(id / 900), 0]),
      }
    }, 13),
  'a Primitive node for everybody': () =>
    fill((count) => {
      const nodes = range(count).map((index) =>
        node(index + 2, 'EmptyLatentImage', { inputs: [slot('width', index, { widget: { name: 'width' } })] }),
      )
      const primitive = node(1, 'PrimitiveNode', {
        outputs: [{ type: 'INT', links: range(count) }],
        widgets_values: [64],
      })
      return { nodes: [primitive, ...nodes], links: range(count).map((id) => [id, 1, 0, id + 2, 0]) }
    }, 19_000),
  'a Primitive node with a long text for everybody': () => {
    const count = 2_000
    const nodes = range(count).map((index) =>
      node(index + 2, 'CLIPTextEncode', {
        inputs: [slot('text', index, { type: 'STRING', widget: { name: 'text' } })],
      }),
    )
    const outputs = [{ type: 'STRING', links: range(count) }]
    const primitive = node(1, 'PrimitiveNode', { outputs, widgets_values: ['x'.repeat(600_000)] })
    return { nodes: [primitive, ...nodes], links: range(count).map((id) => [id, 1, 0, id + 2, 0]) }
  },
  'a list of choices of its own': () =>
    fill(
      (count) => ({
        nodes: [
          node(1, 'CustomCombo', {
            inputs: range(900).map(() => slot('q', null, { widget: { name: 'q' } })),
            widgets_values: ['a', 0, ...range(count).map((id) => `${id}`)],
          }),
        ],
      }),
      20_000,
    ),
  'inputs that grow': () =>
    fill((count) => {
      const nodes = range(count).map((index) =>
        node(index + 1, 'BatchImagesNode', {
          inputs: range(990).map((each) => slot('images.image5', index * 990 + each)),
        }),
      )
      return { nodes, links: range(count * 990).map((id) => [id, 1, 0, 1 + Math.floor(id / 990), 0]) }
    }, 15),
  'types with many words': () =>
    fill((count) => {
      const nodes = range(count).map((index) =>
        node(index + 2, 'Nobody', {
          mode: 4,
          inputs: range(20).map((each) => slot(`i${each}`, index + 1, { type: LONG_TYPE })),
          outputs: [{ type: `X${LONG_TYPE}`, links: [index + 2] }],
        }),
      )
      const save = node(count + 2, 'ModelSave', { inputs: [slot('model', count + 1, { type: 'MODEL' })] })
      return {
        nodes: [node(1, 'CheckpointLoaderSimple'), ...nodes, save],
        links: range(count + 1).map((index) => [index + 1, index + 1, 0, index + 2, 0]),
      }
    }, 1_000),
  'a long text of braces': () => ({
    nodes: [node(1, 'CLIPTextEncode', { widgets_values: ['{a|b}'.repeat(199_000)] })],
  }),
  'a long text of comments': () => ({
    nodes: [node(1, 'CLIPTextEncode', { widgets_values: ['/* //'.repeat(199_000)] })],
  }),
  'a name that takes in others': () => {
    const source = node(1, 'KSampler', { title: 'S', widgets_values: [1, 'fixed', 20, 8, 'euler', 'normal', 1] })
    return { nodes: [source, node(2, 'SaveImage', { widgets_values: ['%S.seed%'.repeat(124_000)] })] }
  },
  'texts that lead to many places': () =>
    fill((count) => {
      const texts = range(500).map((index) =>
        node(index + 1, 'CLIPTextEncode', {
          outputs: [{ type: 'CONDITIONING', links: [index] }],
          widgets_values: ['x'],
        }),
      )
      const hub = node(1_000, 'Nobody', { inputs: range(500).map((index) => slot(`i${index}`, index)) })
      const users = range(count).map((index) => node(2_000 + index, 'Nobody', { inputs: [slot('x', 1_000 + index)] }))
      const links = [
        ...range(500).map((index) => [index, index + 1, 0, 1_000, index]),
        ...range(count).map((index) => [1_000 + index, 1_000, 0, 2_000 + index, 0]),
      ]
      return { nodes: [...texts, hub, ...users], links }
    }, 15_000),
  'numbers and lists as values': () => ({
    nodes: [node(1, 'Nobody', { widgets_values_named: { list: range(160_000), text: 'x'.repeat(10_000) } })],
  }),
}
