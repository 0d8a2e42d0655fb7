/**
 * A catalog from ComfyUI's own description of its nodes. The description does not say which inputs a node judges by itself
 * (validators are code), so the known ones of its own classes stand here. A class of another author may judge any of them.
 */
import type { NodeCatalog, NodeDefinition } from './node-catalog.ts'

/** By class. */
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

/** Classes of ComfyUI whose validator looks at more than values: at what is linked, or at several inputs together. */
const OWN_JUDGES: ReadonlySet<string> = new Set(['ComfySwitchNode', 'CustomCombo'])
/** Where ComfyUI's own classes come from; those that call partner services have validators of many kinds. */
const OWN_MODULE = /^(?:nodes|comfy_extras(?:\..+)?)$/

/** Self-checked, but no file of anybody. */
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

/** A server that does not say where its classes come from is taken to have none but its own. */
function isForeign(definition: NodeDefinition | null): boolean {
  const module = definition?.['python_module']
  return typeof module === 'string' && !OWN_MODULE.test(module)
}
