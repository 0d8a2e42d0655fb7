/** Checks of ComfyUI's own editor: whether the named copy is one, and how to get one. */
import { statSync } from 'node:fs'
import path from 'node:path'
import type { FrontendConfig } from '../../config/blocks/frontend-config.ts'
import type { Config } from '../../config/config.ts'
import { type Finding, fail, ok, warn } from './check.ts'

const WHAT = 'ComfyUI page'
const GET_ONE =
  'pip download --no-deps comfyui-frontend-package, unzip the .whl, and give --comfyui-frontend <folder>/comfyui_frontend_package/static; see docs/comfyui-frontend.md'

export function checkFrontend({ frontend }: Config): readonly Finding[] {
  if (frontend === null) return [ok(WHAT, `not served; to have ComfyUI's own editor here: ${GET_ONE}`)]
  return [checkCopy(frontend), ...checkExtras(frontend)]
}

function checkCopy({ directory, port }: FrontendConfig): Finding {
  if (!isFile(path.join(directory, 'index.html'))) return fail(WHAT, `${directory} has no index.html`, GET_ONE)
  return ok(WHAT, `${directory}, on port ${port}`)
}

function checkExtras({ templateDirectories, nodeDocsDirectory, userCssFile }: FrontendConfig): readonly Finding[] {
  const missing = [
    ...templateDirectories.filter((folder) => !isFolder(folder)).map((folder) => ['comfyuiTemplates', folder] as const),
    ...(nodeDocsDirectory === null || isFolder(nodeDocsDirectory)
      ? []
      : [['comfyuiNodeDocs', nodeDocsDirectory] as const]),
    ...(userCssFile === null || isFile(userCssFile) ? [] : [['comfyuiUserCss', userCssFile] as const]),
  ]
  return missing.map(([setting, named]) => warn(WHAT, `${named} is not there`, `correct ${setting}, or leave it out`))
}

function isFile(named: string): boolean {
  return statSync(named, { throwIfNoEntry: false })?.isFile() === true
}

function isFolder(named: string): boolean {
  return statSync(named, { throwIfNoEntry: false })?.isDirectory() === true
}
