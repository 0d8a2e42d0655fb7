/**
 * A partner's model inside a workflow. The node carries input and pictures to the function that the service handed to the
 * engine, and the answer back; it occupies no thread while it waits.
 */

import { type JsonValue, parseLosslessJson, stringifyLosslessJson } from '../../lib/json/lossless-json.ts'
import { RUN_MODEL_CLASS } from '../graph/model-nodes.ts'
import { fromFile, toPngs } from '../images/in-turns.ts'
import { defineNode } from '../node/define-node.ts'
import { image, string } from '../node/input-kinds.ts'
import { NodeError } from '../node/node-error.ts'
import type { Value } from '../values/value.ts'

function readInput(text: string): JsonValue {
  try {
    return parseLosslessJson(text)
  } catch (error) {
    throw new NodeError('ValueError', `input is not valid JSON: ${(error as Error).message}`)
  }
}

export const runModel = defineNode({
  classType: RUN_MODEL_CLASS,
  displayName: 'Run Model',
  category: 'partner',
  description: "Runs a partner's model and gives its answer, and the pictures in it.",
  style: 'schema',
  required: {
    model: string({ default: '', tooltip: 'The id of the model: provider/model.' }),
    input: string({ default: '{}', multiline: true, tooltip: "The model's input as JSON." }),
  },
  optional: { images: image({ tooltip: 'Pictures that belong to the input.' }) },
  outputs: [
    { type: 'STRING', name: 'output' },
    { type: 'IMAGE', name: 'images', isList: true },
  ],
  isApiNode: true,
  // Two equal nodes are two orders.
  isNotIdempotent: true,
  cost: 'inline',
  async run({ model, input, images }, context) {
    if (context.runModel === null) throw new NodeError('RuntimeError', 'models cannot be run from here')
    const request = { model: model.trim(), input: readInput(input) }
    if (request.model === '') throw new NodeError('ValueError', 'model is empty: give an id such as provider/model')
    const pictures = images === undefined ? [] : await toPngs(images, context)
    const answer = await context.runModel({ ...request, images: pictures })
    context.checkpoint()
    const made: Value[] = []
    for (const bytes of answer.images) {
      made.push(await fromFile(bytes, { ...context, maxPixels: context.maxImagePixels }))
    }
    return { outputs: [stringifyLosslessJson(answer.output), made] }
  },
})
