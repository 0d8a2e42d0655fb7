/** The nodes of the fake engine, in the form in which an engine describes its own. */
import type { InputSpec, NodeCatalog, NodeDefinition } from '../../../engine/graph/node-catalog.ts'

const INPUTS = {
  FakeSource: {},
  FakeSampler: { steps: ['INT', { default: 20, min: 1, max: 10000 }] },
  FakeSave: { text: ['STRING', {}], count: ['INT', { default: 1, min: 0, max: 100000 }] },
  FakeValue: { value: ['*', {}], key: ['STRING', {}] },
  FakeFile: {
    key: ['STRING', {}],
    filename: ['STRING', {}],
    folder: ['STRING', {}],
    content_type: ['STRING', {}],
    text: ['STRING', {}],
  },
  FakeLoad: { image: [[], { image_upload: true }] },
  FakeBlock: {},
  FakeLog: { text: ['STRING', {}], times: ['INT', { default: 1, min: 1, max: 1000000 }] },
  FakeGate: {},
  FakeHang: {},
  FakeFail: {},
} as const satisfies Record<string, Readonly<Record<string, InputSpec>>>

export type FakeClass = keyof typeof INPUTS

function define(name: string, optional: Readonly<Record<string, InputSpec>>): NodeDefinition {
  return {
    input: { required: {}, optional },
    input_order: { required: [], optional: Object.keys(optional) },
    is_input_list: false,
    output: [],
    output_is_list: [],
    output_name: [],
    name,
    display_name: name,
    category: 'fake',
    output_node: true,
    has_intermediate_output: false,
  }
}

const definitions = new Map<string, NodeDefinition>(
  Object.entries(INPUTS).map(([name, optional]) => [name, define(name, optional)]),
)

export const fakeCatalog: NodeCatalog = {
  find: (classType) => definitions.get(classType) ?? null,
  classTypes: () => [...definitions.keys()],
  selfCheckedInputs: () => [],
}
