/**
 * What an input is called: by the label or title that the author gave it, else by what its value is for, else by the class. A name
 * such as `value` or `text_2` tells a stranger nothing, so it is taken only where nothing better is known.
 */
import { folderOfInput } from '../../workflows/model-folders.ts'
import type { FileKind } from '../endpoint.ts'
import { cleanTitle, isGeneric, toName, toNameOfText, toNameOfTitle, toWords, withoutNumber } from './names.ts'
import type { Purposes } from './purposes.ts'
import type { Source } from './sources.ts'

interface Wanted {
  readonly name: string
  /** As people read it. */
  readonly title: string
  /** What tells it from another of the same name; may be empty. */
  readonly prefix: string
}

interface NameContext {
  readonly purposes: Purposes
  /** The value that the title of its node is about. */
  readonly isMain: boolean
}

const KIND_WORDS: Readonly<Record<FileKind, string>> = {
  image: 'image',
  mask: 'mask',
  video: 'video',
  audio: 'audio',
  model3d: 'model',
  file: 'file',
}
const MEDIA_WORD =
  /image|frame|photo|picture|mask|video|audio|sound|voice|song|music|model|mesh|file|sketch|drawing|portrait/
const WEIGHT_WORDS: Readonly<Record<string, string>> = {
  checkpoints: 'checkpoint',
  loras: 'lora',
  vae: 'vae',
  text_encoders: 'text_encoder',
  diffusion_models: 'diffusion_model',
  clip_vision: 'clip_vision_model',
  controlnet: 'controlnet',
  upscale_models: 'upscale_model',
}
const MAX_TITLE = 200
const MAX_PREFIX = 16

export function nameSource(source: Source, context: NameContext): Wanted {
  const { label, title, classTitle } = source
  const [{ file, input }] = source.declared
  const labelled = label === null ? '' : nameOfLabel(label)
  const titled = title !== null && context.isMain ? toNameOfTitle(title, classTitle) : ''
  const isText = file === null && typeof source.value === 'string' && (input === null || input.type === 'STRING')
  const said = labelled || titled
  const found =
    said ||
    (file !== null
      ? nameOfFile(source, file, context)
      : isText
        ? nameOfText(source, context)
        : nameOfValue(source, context))
  const name = isText ? toNameOfText(found) : normalise(found)
  const near = title === null || context.isMain ? '' : toNameOfTitle(title, classTitle)
  return {
    name,
    title: titleOf(source, { name, found, labelled, isMain: context.isMain }),
    prefix: near.length <= MAX_PREFIX ? near : '',
  }
}

interface Named {
  readonly name: string
  /** Before it was made one of the usual words. */
  readonly found: string
  readonly labelled: string
  readonly isMain: boolean
}

/** In the author's own words and language, where there are any. */
function titleOf({ label, title, classTitle }: Source, { name, found, labelled, isMain }: Named): string {
  if (name !== found) return toWords(name)
  const isForeign = (text: string | null) => text !== null && toName(text) === ''
  if (label !== null && (labelled !== '' || isForeign(label))) return toWords(label).slice(0, MAX_TITLE)
  const own = title === null || !isMain ? '' : cleanTitle(title, classTitle)
  return (own !== '' && (toName(own) === name || isForeign(own)) ? toWords(own) : toWords(name)).slice(0, MAX_TITLE)
}

function nameOfLabel(label: string): string {
  const name = toName(cleanTitle(label, null))
  return isGeneric(name) ? '' : name
}

const normalise = (name: string) => (/^(?:noise|random)_seed$/.test(name) ? 'seed' : name)

function nameOfFile({ nodeId, places, holder, input }: Source, kind: FileKind, { purposes }: NameContext): string {
  const word = purposes.isOnlyMask(places[0].nodeId) ? 'mask' : KIND_WORDS[kind]
  const own = holder === 'host' ? withoutNumber(toName(input)) : ''
  const purpose =
    (isGeneric(own) || MEDIA_WORD.test(own) ? '' : own) ||
    purposes.ofMedia(nodeId) ||
    purposes.ofMedia(places[0].nodeId)
  if (purpose === '') return word
  // What takes several calls them so; this is one of them.
  const single = purpose.replace(/(image|frame|video|audio|mask)s$/, '$1')
  return MEDIA_WORD.test(single) ? single : `${single}_${word}`
}

// What text encoders call their texts.
const ENCODED: ReadonlySet<string> = new Set([
  'prompt',
  'text_g',
  'text_l',
  'clip_l',
  't5xxl',
  'llama',
  'bert',
  'mt5xl',
  'user_prompt',
])

function nameOfText(source: Source, { purposes }: NameContext): string {
  const { places, input, holder, declared } = source
  const own = withoutNumber(toName(lastWord(holder === 'host' ? input : places[0].input)))
  const inner = withoutNumber(toName(lastWord(places[0].input)))
  const name = isGeneric(own) ? inner : own
  if (!isGeneric(name) && !ENCODED.has(name)) return name
  const role = purposes.roleOf(places[0].nodeId)
  if (role !== null) return role === 'negative' ? 'negative_prompt' : 'prompt'
  if (!isGeneric(name)) return name
  const said = titleOfPlace(source) || purposes.ofValue(places[0].nodeId)
  if (said !== '') return said
  // Most texts of several lines are prompts; a short one is a part of something.
  return declared[0].input?.options.multiline === true ? 'prompt' : nameOfClass(source)
}

function nameOfValue(source: Source, { purposes }: NameContext): string {
  const { holder, input, places, nodeId, declared } = source
  const folder = folderOfInput(declared[0].node.classType, places[0].input)
  if (folder !== null && Object.hasOwn(WEIGHT_WORDS, folder)) return WEIGHT_WORDS[folder]
  const words = [holder === 'host' ? input : places[0].input, places[0].input].map((each) => toName(lastWord(each)))
  for (const word of words) {
    // `width_1` is the second of its kind in the subgraph, and maybe the only one that is shown; `clip_name2` is a name.
    const name = isGeneric(word) ? '' : holder === 'host' ? word.replace(/_\d+$/, '') : word
    if (name !== '') return name
  }
  return titleOfPlace(source) || purposes.ofValue(holder === 'node' ? nodeId : places[0].nodeId) || nameOfClass(source)
}

const lastWord = (path: string) => path.slice(path.lastIndexOf('.') + 1)

/** The title of the inner node that a value ends up in. */
function titleOfPlace({ declared: [{ title, input }], holder }: Source): string {
  return holder === 'node' || title === null || input === null ? '' : toNameOfTitle(title, null)
}

/** `concatenate_string_a`: the last resort. */
function nameOfClass({ declared, places, holder, title, classTitle }: Source): string {
  const [{ node }] = declared
  const own = toName(lastWord(places[0].input))
  const around = holder === 'host' ? toName(title ?? classTitle ?? '') : ''
  const classWords = toName(node.classType.replace(/(?:Node|V\d+)$/, '').replace(/([a-z])([A-Z])/g, '$1 $2'))
  if (around !== '') return `${around.slice(0, 40)}_${own}`
  return toName(own === 'value' || own === '' ? classWords : `${classWords}_${own}`) || 'setting'
}
