/** ComfyUI's editor on a listener of its own: which files it is made of, and where it listens. */
import path from 'node:path'
import { ConfigError } from '../config-error.ts'
import type { FoundSettings, ToAbsolute } from '../settings/setting-sources.ts'
import type { SettingName, SettingValues } from '../settings/settings.ts'

export interface FrontendConfig {
  /** All paths are absolute. */
  readonly directory: string
  readonly port: number
  /** Where browsers reach it; null: what the request says. */
  readonly publicUrl: string | null
  readonly templateDirectories: readonly string[]
  /** Help for nodes and a style sheet of the operator; neither need exist. */
  readonly nodeDocsDirectory: string
  readonly userCssFile: string
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
    nodeDocsDirectory: path.join(directory, 'docs'),
    userCssFile: path.join(directory, 'user.css'),
  }
}

const ONLY_WITH_FRONTEND: readonly SettingName[] = ['comfyuiFrontendPort', 'comfyuiFrontendUrl', 'comfyuiTemplates']

export function refuseFrontendContradictions(
  { comfyuiFrontend, comfyuiFrontendPort, comfyuiFrontendUrl, port, publicUrl, role }: SettingValues,
  { where, isSet }: Pick<FoundSettings, 'where' | 'isSet'>,
): void {
  if (comfyuiFrontend === null) {
    const pointless = ONLY_WITH_FRONTEND.find(isSet)
    if (pointless === undefined) return
    throw new ConfigError(
      `${pointless} (from ${where(pointless)}) is about ComfyUI's editor, and no copy of it is named; give --comfyui-frontend, or leave it out`,
    )
  }
  if (role === 'worker') {
    throw new ConfigError(
      `comfyuiFrontend (from ${where('comfyuiFrontend')}) is for people, and a process of the role worker answers nobody; give it to one of the role api or all`,
    )
  }
  if (comfyuiFrontendPort === port && port !== 0) {
    throw new ConfigError(
      `comfyuiFrontendPort and port are both ${port}; the editor needs a port of its own, so that its scripts do not share an origin with the console`,
    )
  }
  if (comfyuiFrontendUrl !== null && comfyuiFrontendUrl === publicUrl) {
    throw new ConfigError(
      `comfyuiFrontendUrl and publicUrl are both ${publicUrl}; the editor needs an origin of its own, so that its scripts cannot act as the console`,
    )
  }
}
