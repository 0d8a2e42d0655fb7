/** ComfyUI's own editor in front of this service: where the user's copy of its files lies, and where it is served. */
import { readList, readPath, readWordOr } from '../readers/read-choice.ts'
import { readPublicUrl } from '../readers/read-network.ts'
import { readCount } from '../readers/read-quantity.ts'
import type { Setting } from './setting.ts'

export const FRONTEND_SETTINGS = {
  comfyuiFrontend: {
    group: 'Frontend',
    argument: '<folder>',
    fallback: 'none',
    read: readWordOr('none', null, readPath),
    help: "Your own copy of the static files of ComfyUI's editor: the folder that holds its `index.html`. It is served on a listener of its own, beside the console. `none`: it is not served. See docs/comfyui-frontend.md.",
  },
  comfyuiFrontendPort: {
    group: 'Frontend',
    argument: '<port>',
    fallback: '8188',
    read: readCount({ min: 0, max: 65_535, example: 8188 }),
    help: 'The port of that listener, on the address of `host`. `0` takes any free port.',
  },
  comfyuiFrontendUrl: {
    group: 'Frontend',
    argument: '<url>',
    fallback: 'none',
    read: readWordOr('none', null, readPublicUrl),
    help: 'Scheme, host and port under which browsers reach that listener, if it is behind a proxy. `none`: what the request says.',
  },
  comfyuiTemplates: {
    group: 'Frontend',
    argument: '<folders>',
    fallback: '',
    read: readList(readPath),
    help: 'Folders with workflow templates for the editor, comma separated; if several have the same file, the first one is used. Empty: the list of templates is empty.',
  },
  comfyuiNodeDocs: {
    group: 'Frontend',
    argument: '<folder>',
    fallback: 'none',
    read: readWordOr('none', null, readPath),
    help: 'A folder with help for nodes, `<class>/<locale>.md`, for the editor. `none`: the editor shows what the catalog says.',
  },
  comfyuiUserCss: {
    group: 'Frontend',
    argument: '<file>',
    fallback: 'none',
    read: readWordOr('none', null, readPath),
    help: "A style sheet of yours that the editor's page loads last. `none`: an empty one.",
  },
} as const satisfies Record<string, Setting<unknown>>
