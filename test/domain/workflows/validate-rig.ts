/** A small catalog with every kind of input, and graphs checked against it. */
import assert from 'node:assert/strict'
import { readGraph } from '../../../engine/graph/graph-json.ts'
import { type ValidateOptions, validate } from '../../../engine/graph/validate/validate.ts'
import type { NodeError } from '../../../engine/graph/validate/validation-result.ts'
import { type JsonObject, NumberText } from '../../../lib/json/lossless-json.ts'
import { defineClass, recordedCatalog } from '../../support/engines/recorded-catalog.ts'

export const catalog = recordedCatalog({
  Source: defineClass('Source', { output: ['IMAGE', 'MASK'] }),
  Pass: defineClass('Pass', { input: { optional: { image: ['IMAGE'] } }, output: ['IMAGE'] }),
  Join: defineClass('Join', {
    input: { optional: { a: ['IMAGE', { lazy: true }], b: ['IMAGE'], c: ['IMAGE'] } },
    output: ['IMAGE'],
    output_matchtypes: null,
  }),
  Sink: defineClass('Sink', { input: { required: { image: ['IMAGE'] } }, output_node: true }),
  Union: defineClass('Union', { output: ['IMAGE, LATENT'] }),
  Choices: defineClass('Choices', { output: [['x', 'y']] }),
  Values: defineClass('Values', {
    input: {
      required: {},
      optional: {
        int: ['INT', { min: 0, max: 18446744073709551615n }],
        float: ['FLOAT', { min: new NumberText('0.5'), max: 2 }],
        string: ['STRING', {}],
        boolean: ['BOOLEAN', {}],
        old: [['x', 1, true]],
        combo: ['COMBO', { options: ['x', 'y'] }],
        many: ['COMBO', { options: ['x', 'y'], multiselect: true }],
        long: ['COMBO', { options: Array.from({ length: 21 }, (_, index) => `model-${index}`) }],
        odd: ['WIDGET', { min: 1 }],
        any: ['*'],
        latent: ['LATENT'],
      },
      hidden: { secret: 'UNIQUE_ID' },
    },
    output_node: true,
  }),
  Slotted: defineClass('Slotted', {
    input: {
      optional: {
        guide: ['COMFY_DYNAMICSLOT_V3', { slotType: 'IMAGE', inputs: { required: { strength: ['FLOAT'] } } }],
      },
    },
    output_node: true,
  }),
  Grower: defineClass('Grower', {
    input: {
      required: {
        items: [
          'COMFY_AUTOGROW_V3',
          { template: { input: { required: { item: ['INT', { max: 9 }] } }, prefix: 'item', min: 2, max: 4 } },
        ],
      },
    },
    output_node: true,
  }),
})

export function check(workflow: JsonObject, options: Partial<ValidateOptions> = {}) {
  return validate(readGraph(workflow), { catalog, ...options })
}

export function node(class_type: string, inputs: JsonObject = {}): JsonObject {
  return { class_type, inputs }
}

export function checkValues(inputs: JsonObject) {
  const result = check({ v: node('Values', inputs) })
  return { errors: result.nodeErrors.v?.errors ?? [], inputs: result.graph.get('v')?.inputs ?? {} }
}

export function only(errors: readonly NodeError[]): NodeError {
  assert.equal(errors.length, 1)
  return errors[0]
}
