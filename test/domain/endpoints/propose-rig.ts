/** Proposals from files in few words; the words for files are those of the conversion's tests. */
import type { JsonObject, JsonValue } from '../../../lib/json/lossless-json.ts'
import type { EndpointInput, FileKind } from '../../../src/domain/endpoints/endpoint.ts'
import { createPropose, type Proposal } from '../../../src/domain/endpoints/propose/propose.ts'
import { catalog, NOW, type Node, node, output } from '../workflows/convert/convert-rig.ts'

export const propose = createPropose({ catalog: () => catalog, clock: { now: () => NOW }, random: () => 0 })

export const proposed = (content: JsonValue): Promise<Proposal> => propose(content, null)

export const examplesOf = (inputs: readonly EndpointInput[]): Record<string, JsonValue> =>
  Object.fromEntries(inputs.map(({ name, example }) => [name, example]))

export const namesOf = (named: readonly { readonly name: string }[]): string[] => named.map(({ name }) => name)

export function find<Type extends EndpointInput['type']>(
  { inputs, candidates }: Proposal,
  name: string,
  type: Type,
): EndpointInput & { readonly type: Type } {
  const found = [...inputs, ...candidates].find((input) => input.name === name)
  if (found?.type !== type)
    throw new Error(`${name} is ${found === undefined ? 'not there' : `of the type ${found.type}`}`)
  return found as EndpointInput & { readonly type: Type }
}

export const placesOf = ({ places }: EndpointInput) => places.map(({ nodeId, input }) => `${nodeId}.${input}`)

export const kindsOf = (outputs: readonly { readonly name: string; readonly kind: FileKind | 'text' }[]) =>
  outputs.map(({ name, kind }) => `${name}: ${kind}`)

/** A sampler with both prompts, as an API graph. */
export const portrait = (): JsonObject => ({
  '1': { class_type: 'CheckpointLoaderSimple', inputs: { ckpt_name: 'base.safetensors' } },
  '2': { class_type: 'CLIPTextEncode', inputs: { text: 'a fox', clip: ['1', 1] } },
  '3': { class_type: 'CLIPTextEncode', inputs: { text: 'blurry', clip: ['1', 1] } },
  '4': { class_type: 'EmptyLatentImage', inputs: { width: 512, height: 768, batch_size: 1 } },
  '5': {
    class_type: 'KSampler',
    inputs: {
      ...{ seed: 7, steps: 20, cfg: 8, sampler_name: 'euler', scheduler: 'normal', denoise: 1 },
      ...{ model: ['1', 0], positive: ['2', 0], negative: ['3', 0], latent_image: ['4', 0] },
    },
  },
  '6': { class_type: 'VAEDecode', inputs: { samples: ['5', 0], vae: ['1', 2] } },
  '7': { class_type: 'SaveImage', inputs: { images: ['6', 0], filename_prefix: 'portrait' } },
})

export const picture = (id: number, name: string, more: Node = {}): Node =>
  node(id, 'LoadImage', { outputs: [output('IMAGE'), output('MASK')], widgets_values: [name, 'image'], ...more })
