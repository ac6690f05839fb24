-- {% macro ddl__kg_quoted() %}
/*
Names of columns as SQL writes them: a list of names in, the list of quoted identifiers out. Fails where the list is
null or empty, or where a name in it is null; p_for: the function that the error names.
*/
create or replace macro kg_quoted(p_names, p_for := 'kg_quoted') as
  case
    when coalesce(len(p_names), 0) = 0 or len(list_filter(p_names, lambda kg_name: kg_name is null)) > 0
      then error(p_for || ': a list of one or more column names is needed, as [''age'', ''zip'']')
    else list_transform(p_names, lambda kg_name: '"' || replace(kg_name, '"', '""') || '"')
  end;
-- {% endmacro %}
