/** Why custom nodes cannot be loaded. The message is one line for the operator: it names the file and what to do. */
export class NodeModuleError extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'NodeModuleError'
  }
}
