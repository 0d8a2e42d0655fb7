/** ComfyUI's editor on a listener of its own: which files it is made of, and where it listens. */
import type { ToAbsolute } from '../settings/setting-sources.ts'
import type { SettingValues } from '../settings/settings.ts'

export interface FrontendConfig {
  /** All paths are absolute. It may also hold a style sheet of the operator (`user.css`) and help for nodes (`docs`). */
  readonly directory: string
  readonly port: number
  /** Where browsers reach it; null: what the request says. */
  readonly publicUrl: string | null
  readonly templateDirectories: readonly string[]
}

/** null: no copy of the editor is named. */
export function toFrontendConfig(values: SettingValues, toAbsolute: ToAbsolute): FrontendConfig | null {
  if (values.comfyuiFrontend === null) return null
  const directory = toAbsolute('comfyuiFrontend', values.comfyuiFrontend)
  return {
    directory,
    port: values.comfyuiFrontendPort,
    publicUrl: values.comfyuiFrontendUrl,
    templateDirectories: values.comfyuiTemplates.map((folder) => toAbsolute('comfyuiTemplates', folder)),
  }
}
