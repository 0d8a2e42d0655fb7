/**
 * A workflow as the editor saves it, for the classes that the built-in engine and the fake ComfyUI servers both have: a subgraph
 * that makes a picture, a bypassed node behind it, and a Primitive node that sets the height.
 */
import type { JsonObject } from '../../../lib/json/lossless-json.ts'

const SUBGRAPH = '11111111-2222-4333-8444-555555555555'

const slot = (name: string, type: string, link: number | null) => ({ name, type, link })
const widget = (name: string, type: string, link: number | null) => ({ name, type, widget: { name }, link })

export function savedPicture(prefix: string): JsonObject {
  return {
    last_node_id: 9,
    last_link_id: 9,
    version: 0.4,
    nodes: [
      {
        id: 5,
        type: SUBGRAPH,
        mode: 0,
        inputs: [widget('width', 'INT', null), widget('height', 'INT', null)],
        outputs: [{ name: 'IMAGE', type: 'IMAGE', links: [1] }],
        properties: {},
        widgets_values: [24, 8],
      },
      {
        id: 6,
        type: 'ImageInvert',
        mode: 4,
        inputs: [slot('image', 'IMAGE', 1)],
        outputs: [{ name: 'IMAGE', type: 'IMAGE', links: [2] }],
        properties: {},
      },
      {
        id: 7,
        type: 'SaveImage',
        mode: 0,
        inputs: [slot('images', 'IMAGE', 2), widget('filename_prefix', 'STRING', null)],
        outputs: [],
        properties: {},
        widgets_values: [prefix],
      },
      { id: 8, type: 'MarkdownNote', mode: 0, inputs: [], outputs: [], properties: {}, widgets_values: ['# Note'] },
    ],
    links: [
      [1, 5, 0, 6, 0, 'IMAGE'],
      [2, 6, 0, 7, 0, 'IMAGE'],
    ],
    definitions: {
      subgraphs: [
        {
          id: SUBGRAPH,
          name: 'Picture',
          inputs: [
            { id: 'a', name: 'width', type: 'INT', linkIds: [20] },
            { id: 'b', name: 'height', type: 'INT', linkIds: [21] },
          ],
          outputs: [{ id: 'c', name: 'IMAGE', type: 'IMAGE', linkIds: [22] }],
          nodes: [
            {
              id: 2,
              type: 'EmptyImage',
              mode: 0,
              inputs: [
                widget('width', 'INT', 20),
                widget('height', 'INT', 21),
                widget('batch_size', 'INT', null),
                widget('color', 'INT', 23),
              ],
              outputs: [{ name: 'IMAGE', type: 'IMAGE', links: [22] }],
              properties: {},
              widgets_values: [512, 512, 1, 0],
            },
            {
              id: 3,
              type: 'PrimitiveNode',
              mode: 0,
              inputs: [],
              outputs: [{ name: 'INT', type: 'INT', widget: { name: 'color' }, links: [23] }],
              properties: { 'Run widget replace on values': false },
              widgets_values: [65280, 'fixed'],
            },
          ],
          links: [
            { id: 20, origin_id: -10, origin_slot: 0, target_id: 2, target_slot: 0, type: 'INT' },
            { id: 21, origin_id: -10, origin_slot: 1, target_id: 2, target_slot: 1, type: 'INT' },
            { id: 22, origin_id: 2, origin_slot: 0, target_id: -20, target_slot: 0, type: 'IMAGE' },
            { id: 23, origin_id: 3, origin_slot: 0, target_id: 2, target_slot: 3, type: 'INT' },
          ],
        },
      ],
    },
  }
}

/** The same beside a text, which is shown: the only text of the workflow is its prompt. */
export function savedCard(prefix: string): JsonObject {
  const { nodes, links, ...picture } = savedPicture(prefix)
  const text = {
    id: 10,
    type: 'PrimitiveString',
    mode: 0,
    inputs: [widget('value', 'STRING', null)],
    outputs: [{ name: 'STRING', type: 'STRING', links: [3] }],
    properties: {},
    widgets_values: ['a card'],
  }
  const shown = { id: 11, type: 'PreviewAny', mode: 0, inputs: [slot('source', '*', 3)], outputs: [], properties: {} }
  return {
    ...picture,
    nodes: [...(nodes as JsonObject[]), text, shown],
    links: [...(links as JsonObject[]), [3, 10, 0, 11, 0, 'STRING']],
  }
}

/** What the editor would submit for it. */
export function submittedPicture(prefix: string, titles: Readonly<Record<string, string>>): JsonObject {
  return {
    '5:2': {
      class_type: 'EmptyImage',
      inputs: { width: 24, height: 8, batch_size: 1, color: 65280 },
      _meta: { title: titles['EmptyImage'] },
    },
    '7': {
      class_type: 'SaveImage',
      inputs: { images: ['5:2', 0], filename_prefix: prefix },
      _meta: { title: titles['SaveImage'] },
    },
  }
}
