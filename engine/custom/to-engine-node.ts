/** A declaration as the executor knows node classes. Its code is elsewhere: calls go to the threads of custom nodes. */

import { defineNode, type EngineNode } from '../node/define-node.ts'
import {
  anything,
  boolean,
  combo,
  float,
  type InputKind,
  image,
  int,
  mask,
  ofType,
  string,
  wideInt,
} from '../node/input-kinds.ts'
import { audio } from '../nodes/audio/edit-audio.ts'
import { latent } from '../nodes/latents/latents.ts'
import type { InputDeclaration, NodeDeclaration } from './declaration.ts'

const LARGEST_SEED = 2n ** 64n - 1n

const KINDS: Readonly<Record<InputDeclaration['kind'], (input: InputDeclaration) => InputKind<unknown>>> = {
  image: ({ options }) => image(options),
  mask: ({ options }) => mask(options),
  latent: ({ options }) => latent(options),
  audio: ({ options }) => ({ ...audio(), spec: ['AUDIO', options] }),
  int: ({ options }) => int(options),
  seed: ({ options }) => wideInt({ default: 0, min: 0, max: LARGEST_SEED, control_after_generate: true, ...options }),
  float: ({ options }) => float(options),
  string: ({ options }) => string(options),
  boolean: ({ options }) => boolean(options),
  choice: ({ options, choices }) => combo(choices, options),
  anything: ({ options }) => anything(options),
  type: ({ options, type }) => ofType(type, options),
}

function toKinds(inputs: readonly InputDeclaration[]): Record<string, InputKind<unknown>> {
  return Object.fromEntries(inputs.map((input) => [input.name, KINDS[input.kind](input)]))
}

export function toEngineNode(declaration: NodeDeclaration): EngineNode {
  const { classType, displayName, category, description, inputs, outputs, isOutputNode, isCached } = declaration
  const optional = inputs.filter((input) => input.isOptional)
  return defineNode({
    classType,
    displayName,
    category,
    description,
    style: 'schema',
    required: toKinds(inputs.filter((input) => !input.isOptional)),
    ...(optional.length > 0 && { optional: toKinds(optional) }),
    outputs: outputs.map(({ name, type }) => ({ name, type })),
    isOutputNode,
    cost: 'isolated',
    ...(!isCached && { changeValue: () => null }),
    run() {
      throw new Error(`${classType} runs in the threads of custom nodes only`)
    },
  })
}
