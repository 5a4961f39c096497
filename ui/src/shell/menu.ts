// Items of context menus.

/** Item of a menu. In a list of items, `null` is a separator. */
export interface Choice {
  label: string;
  /** Name of the key that has the same effect. */
  key?: string;
  on?: boolean;
  disabled?: boolean;
  choose: () => void;
}

export type Choices = (Choice | null)[];
