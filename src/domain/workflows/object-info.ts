/**
 * A catalog from ComfyUI's own description of its nodes. The description does not say which inputs a node judges by itself
 * (validators are code), so the known ones of its own classes stand here; classes that nobody knows have none.
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

/** Self-checked, but no file of anybody. */
const NO_FILES: ReadonlySet<string> = new Set(['CustomCombo'])

export function catalogOf(info: ObjectInfo): NodeCatalog {
  const selfCheckedInputs = (classType: string) => SELF_CHECKED.get(classType) ?? NONE
  return {
    find: (classType) => (Object.hasOwn(info, classType) ? info[classType] : null),
    classTypes: () => Object.keys(info),
    selfCheckedInputs,
    fileInputs: (classType) => (NO_FILES.has(classType) ? NONE : selfCheckedInputs(classType)),
  }
}
