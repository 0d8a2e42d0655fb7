/**
 * The definitions of all node classes, or of one; an unknown class is an empty object, as ComfyUI answers it. Inputs that
 * choose among uploaded files list the caller's own. All other definitions are the same for every caller, and the whole map is
 * large, so the text of each is made once.
 */
import type { InputSpec, NodeDefinition } from '../../../../engine/graph/node-catalog.ts'
import { typeFromName } from '../../../../lib/files/mime.ts'
import { type JsonObject, stringifyLosslessJson } from '../../../../lib/json/lossless-json.ts'
import { type Api, type OperationDeps, paramOf, sendJsonText } from '../legacy-operation.ts'

// More names than a person chooses from.
const MAX_FILES = 1000
const UPLOAD_OPTIONS: Readonly<Record<string, string>> = {
  image_upload: 'image/',
  audio_upload: 'audio/',
  video_upload: 'video/',
}

type FileNames = (mediaFamily: string) => readonly string[]

export function getObjectInfo(api: Api, { catalog, refreshLists, assets, accountOf }: OperationDeps): void {
  const texts = new WeakMap<NodeDefinition, string | null>()

  /** null for a class that lists files of the caller. */
  function textOf(definition: NodeDefinition): string | null {
    let text = texts.get(definition)
    if (text === undefined) {
      text = listsFiles(definition) ? null : stringify(definition)
      texts.set(definition, text)
    }
    return text
  }

  async function render(classTypes: readonly string[], accountId: string): Promise<string> {
    let names: FileNames | null = null
    const entries: string[] = []
    for (const classType of classTypes) {
      const definition = catalog().find(classType)
      if (definition === null) continue
      names ??= textOf(definition) === null ? await readNames(accountId) : null
      const text = textOf(definition) ?? stringify(withFiles(definition, names ?? (() => [])))
      entries.push(`${JSON.stringify(classType)}:${text}`)
    }
    return `{${entries.join(',')}}`
  }

  async function readNames(accountId: string): Promise<FileNames> {
    const files = await assets.list(accountId, 'input', MAX_FILES)
    const names = files.flatMap(({ filePath }) => (filePath === null ? [] : [filePath.replace(/^input\//, '')]))
    return (family) => names.filter((name) => typeFromName(name)?.startsWith(family) === true).sort()
  }

  // An editor asks for all of them at its start, and when its user wants to see what was put on a server just now.
  api.both('GET', '/object_info', 'any_scope', async (request, reply) => {
    await refreshLists()
    return sendJsonText(reply, await render(catalog().classTypes(), accountOf(request)))
  })
  api.both('GET', '/object_info/:classType', 'any_scope', async (request, reply) =>
    sendJsonText(reply, await render([paramOf(request, 'classType')], accountOf(request))),
  )
}

/** With members that clients expect and an engine may leave out. */
function stringify(definition: NodeDefinition): string {
  const isSchemaStyle = Object.hasOwn(definition, 'output_matchtypes')
  const entry = {
    ...definition,
    python_module: definition['python_module'] ?? 'nodes',
    ...(isSchemaStyle && { price_badge: definition['price_badge'] ?? null }),
  }
  return stringifyLosslessJson(entry as unknown as JsonObject)
}

function familyOf([type, options]: InputSpec): string | null {
  if (!Array.isArray(type) && type !== 'COMBO') return null
  const name = Object.keys(UPLOAD_OPTIONS).find((one) => options?.[one] === true)
  return name === undefined ? null : UPLOAD_OPTIONS[name]
}

function listsFiles({ input }: NodeDefinition): boolean {
  return [input.required, input.optional].some((group) =>
    Object.values(group ?? {}).some((spec) => Array.isArray(spec) && familyOf(spec) !== null),
  )
}

function withFiles(definition: NodeDefinition, names: FileNames): NodeDefinition {
  const fill = (group: Readonly<Record<string, InputSpec>> | undefined) =>
    group && Object.fromEntries(Object.entries(group).map(([name, spec]) => [name, fillSpec(spec, names)]))
  const { required, optional, ...rest } = definition.input
  const input = {
    ...(required !== undefined && { required: fill(required) }),
    ...(optional !== undefined && { optional: fill(optional) }),
    ...rest,
  }
  return { ...definition, input } as NodeDefinition
}

/** Old-style lists take the position of the type, new-style ones are among the options. */
function fillSpec(spec: InputSpec, names: FileNames): InputSpec {
  const family = familyOf(spec)
  if (family === null) return spec
  const [type, options] = spec
  if (!Array.isArray(type)) return [type, { ...options, options: names(family) }]
  return options === undefined ? [names(family)] : [names(family), options]
}
