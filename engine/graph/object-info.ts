/**
 * Makes a catalog from ComfyUI's `object_info`. That does not say which inputs a node checks itself (validators are code), so
 * those of ComfyUI's own classes are listed here. A class of another author may check any of its inputs.
 */
import type { NodeCatalog, NodeDefinition } from './node-catalog.ts'

/** Inputs by class. */
export type ObjectInfo = Readonly<Record<string, NodeDefinition>>

const NONE: readonly string[] = []

const SELF_CHECKED: ReadonlyMap<string, readonly string[]> = new Map([
  ['LoadImage', ['image']],
  ['LoadImageMask', ['image']],
  ['LoadImageOutput', ['image']],
  ['WebcamCapture', ['image']],
  ['LoadAudio', ['audio']],
  ['LoadVideo', ['file']],
  ['LoadLatent', ['latent']],
  ['CustomCombo', ['choice', 'index']],
])

/** Classes of ComfyUI whose validator checks more than single values: links, or several inputs together. */
const OWN_JUDGES: ReadonlySet<string> = new Set(['ComfySwitchNode', 'CustomCombo'])
/** Where ComfyUI's own classes come from; those that call partner services have validators of many kinds. */
const OWN_MODULE = /^(?:nodes|comfy_extras(?:\..+)?)$/

/** Self-checked inputs that name no file. */
const NO_FILES: ReadonlySet<string> = new Set(['CustomCombo'])

export function catalogOf(info: ObjectInfo): NodeCatalog {
  const selfCheckedInputs = (classType: string) => SELF_CHECKED.get(classType) ?? NONE
  const find = (classType: string) => (Object.hasOwn(info, classType) ? info[classType] : null)
  return {
    find,
    classTypes: () => Object.keys(info),
    selfCheckedInputs,
    fileInputs: (classType) => (NO_FILES.has(classType) ? NONE : selfCheckedInputs(classType)),
    judgesItself: (classType) => OWN_JUDGES.has(classType) || isForeign(find(classType)),
  }
}

/** If a server does not say where its classes come from, all of them are taken to be ComfyUI's own. */
function isForeign(definition: NodeDefinition | null): boolean {
  const module = definition?.['python_module']
  return typeof module === 'string' && !OWN_MODULE.test(module)
}
