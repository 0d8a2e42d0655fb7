/**
 * A script for the editor's page, of the kind that node packs add: where the engines lack classes of the graph that the editor opens at
 * first, which would then be red all over, it opens a small one that they can run, or an empty one.
 */
export const FIRST_GRAPH_PATH = '/extensions/atelier/first-graph.js'

const node = (id: number, type: string, rest: object) => ({
  ...{
    id,
    type,
    pos: [100 + 320 * (id - 1), 160],
    size: [270, 130],
    flags: {},
    order: id - 1,
    mode: 0,
    properties: {},
  },
  ...rest,
})

const GRAPH = {
  last_node_id: 3,
  last_link_id: 2,
  nodes: [
    node(1, 'EmptyImage', {
      outputs: [{ name: 'IMAGE', type: 'IMAGE', links: [1] }],
      widgets_values: [512, 512, 1, 0x33_66_99],
    }),
    node(2, 'ImageInvert', {
      inputs: [{ name: 'image', type: 'IMAGE', link: 1 }],
      outputs: [{ name: 'IMAGE', type: 'IMAGE', links: [2] }],
    }),
    node(3, 'PreviewImage', { inputs: [{ name: 'images', type: 'IMAGE', link: 2 }] }),
  ],
  links: [
    [1, 1, 0, 2, 0, 'IMAGE'],
    [2, 2, 0, 3, 0, 'IMAGE'],
  ],
  groups: [],
}

/** The editor's own modules are reached as packs reach them; an editor that keeps them elsewhere is left as it is. */
export const FIRST_GRAPH_SCRIPT = `const { app, defaultGraph } = window.comfyAPI ?? {}
const first = defaultGraph?.defaultGraph
const graph = ${JSON.stringify(GRAPH)}
const isKnown = (nodes, classes) => nodes.every(({ type }) => type in classes)
app?.app?.registerExtension({
  name: 'Atelier.FirstGraph',
  addCustomNodeDefs(classes) {
    if (first?.nodes === undefined || isKnown(first.nodes, classes)) return
    Object.assign(first, isKnown(graph.nodes, classes) ? graph : { ...graph, nodes: [], links: [] })
  },
})
`
