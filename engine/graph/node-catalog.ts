/**
 * The node classes that an engine can run, in ComfyUI's own `object_info` form, which engines, validation and the legacy surface
 * share. What a declaration cannot express (a file must exist) is checked by the `checkInput` that validation is given.
 */
export type InputOptions = Readonly<Record<string, unknown>>
/** `[TYPE, options?]` or, for an old-style combo, `[[choice, …], options?]`. */
export type InputSpec = readonly [type: string | readonly unknown[], options?: InputOptions]

export interface NodeDefinition {
  readonly input: {
    readonly required?: Readonly<Record<string, InputSpec>>
    readonly optional?: Readonly<Record<string, InputSpec>>
    readonly hidden?: Readonly<Record<string, unknown>>
  }
  readonly input_order: Readonly<Record<string, readonly string[]>>
  readonly is_input_list: boolean
  readonly output: readonly unknown[]
  readonly output_is_list: readonly boolean[]
  readonly output_name: readonly string[]
  readonly name: string
  readonly display_name: string
  readonly category: string
  readonly output_node: boolean
  readonly has_intermediate_output: boolean
  readonly [extra: string]: unknown
}

/** The results of a class follow from its inputs and the bytes of its files alone. */
export interface Repeatability {
  /** Of everything else that decides the bytes: code, libraries, processor. Bytes of another build may differ. */
  readonly build: string
  /** Inputs that become names of files, in which a token may stand for the time. */
  readonly names: readonly string[]
}

export interface NodeCatalog {
  find(classType: string): NodeDefinition | null
  classTypes(): readonly string[]
  /** Self-checked inputs: the node itself checks their value, such as a file name, so min, max and combo checks do not apply. */
  selfCheckedInputs(classType: string): readonly string[]
  /**
   * The self-checked inputs that name a file without declaring an upload option, such as LoadLatent.latent. Absent: all of
   * them do; an engine with other self-checked inputs (CustomCombo.choice) must tell them apart here.
   */
  fileInputs?(classType: string): readonly string[]
  /**
   * Whether the class may have validation rules of its own that its description does not show. If so, its declared choices,
   * bounds and link types are no reason to refuse a graph. Absent: no class has such rules.
   */
  judgesItself?(classType: string): boolean
  /** The self-checked inputs that name a folder: every file of the caller that lies directly in it belongs to the job. */
  folderInputs?(classType: string): readonly string[]
  /** null: the same inputs may give other bytes, or nobody knows. Absent: nobody knows of any class. */
  repeatability?(classType: string): Repeatability | null
}
